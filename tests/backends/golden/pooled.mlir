module @eshkol {
  func.func public @main(%arg0: tensor<16xf32>) -> (tensor<4xf32>, tensor<1xi32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<16xf32>) -> tensor<1x1x4x4xf32>
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 1, 3, 3>, strides = array<i64: 1, 1, 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<1x1x2x2xf32>) -> tensor<2x2xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %6 = stablehlo.constant dense<-1> : tensor<i64>
    %7 = stablehlo.constant dense<0> : tensor<i64>
    %8 = "stablehlo.compare"(%6, %7) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %10 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x1x2x2xf32>
    %11 = "stablehlo.compare"(%10, %5) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %12 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<1x1x2x2xi1>
    %13 = "stablehlo.or"(%12, %11) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %14 = "stablehlo.compare"(%5, %5) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %15 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %16 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %17 = "stablehlo.compare"(%15, %16) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %18 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64>} : (tensor<i1>) -> tensor<1x1x2x2xi1>
    %19 = "stablehlo.and"(%14, %18) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %20 = "stablehlo.or"(%13, %19) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %21 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %22 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x1x2x2xf32>
    %23 = "stablehlo.select"(%20, %5, %22) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    %24 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x1x2xi64>
    %25 = stablehlo.constant dense<8> : tensor<1x1x2xi64>
    %26 = "stablehlo.multiply"(%24, %25) : (tensor<1x1x2xi64>, tensor<1x1x2xi64>) -> tensor<1x1x2xi64>
    %27 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x1x1x2xi64>
    %28 = stablehlo.constant dense<2> : tensor<1x1x1x2xi64>
    %29 = "stablehlo.multiply"(%27, %28) : (tensor<1x1x1x2xi64>, tensor<1x1x1x2xi64>) -> tensor<1x1x1x2xi64>
    %30 = "stablehlo.broadcast_in_dim"(%26) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %31 = "stablehlo.broadcast_in_dim"(%29) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %32 = "stablehlo.add"(%30, %31) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %33 = stablehlo.constant dense<-1> : tensor<i64>
    %34 = "stablehlo.broadcast_in_dim"(%33) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x1x2x2xi64>
    %35 = "stablehlo.select"(%20, %32, %34) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %36 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 0, 0, 1>, limit_indices = array<i64: 1, 1, 3, 4>, strides = array<i64: 1, 1, 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
    %37 = "stablehlo.reshape"(%36) : (tensor<1x1x2x2xf32>) -> tensor<2x2xf32>
    %38 = "stablehlo.reshape"(%37) : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %39 = stablehlo.constant dense<0> : tensor<i64>
    %40 = "stablehlo.broadcast_in_dim"(%39) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x1x2x2xi64>
    %41 = "stablehlo.compare"(%35, %40) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi1>
    %42 = "stablehlo.compare"(%23, %38) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %43 = "stablehlo.or"(%41, %42) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %44 = "stablehlo.compare"(%38, %38) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %45 = "stablehlo.compare"(%23, %23) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %46 = "stablehlo.and"(%44, %45) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %47 = "stablehlo.or"(%43, %46) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %48 = "stablehlo.select"(%47, %38, %23) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    %49 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x1x2xi64>
    %50 = stablehlo.constant dense<8> : tensor<1x1x2xi64>
    %51 = "stablehlo.multiply"(%49, %50) : (tensor<1x1x2xi64>, tensor<1x1x2xi64>) -> tensor<1x1x2xi64>
    %52 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x1x1x2xi64>
    %53 = stablehlo.constant dense<2> : tensor<1x1x1x2xi64>
    %54 = "stablehlo.multiply"(%52, %53) : (tensor<1x1x1x2xi64>, tensor<1x1x1x2xi64>) -> tensor<1x1x1x2xi64>
    %55 = stablehlo.constant dense<1> : tensor<1x1x1x2xi64>
    %56 = "stablehlo.add"(%54, %55) : (tensor<1x1x1x2xi64>, tensor<1x1x1x2xi64>) -> tensor<1x1x1x2xi64>
    %57 = "stablehlo.broadcast_in_dim"(%51) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %58 = "stablehlo.broadcast_in_dim"(%56) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %59 = "stablehlo.add"(%57, %58) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %60 = "stablehlo.select"(%47, %59, %35) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %61 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 0, 1, 0>, limit_indices = array<i64: 1, 1, 4, 3>, strides = array<i64: 1, 1, 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
    %62 = "stablehlo.reshape"(%61) : (tensor<1x1x2x2xf32>) -> tensor<2x2xf32>
    %63 = "stablehlo.reshape"(%62) : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %64 = stablehlo.constant dense<0> : tensor<i64>
    %65 = "stablehlo.broadcast_in_dim"(%64) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x1x2x2xi64>
    %66 = "stablehlo.compare"(%60, %65) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi1>
    %67 = "stablehlo.compare"(%48, %63) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %68 = "stablehlo.or"(%66, %67) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %69 = "stablehlo.compare"(%63, %63) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %70 = "stablehlo.compare"(%48, %48) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %71 = "stablehlo.and"(%69, %70) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %72 = "stablehlo.or"(%68, %71) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %73 = "stablehlo.select"(%72, %63, %48) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    %74 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x1x2xi64>
    %75 = stablehlo.constant dense<8> : tensor<1x1x2xi64>
    %76 = "stablehlo.multiply"(%74, %75) : (tensor<1x1x2xi64>, tensor<1x1x2xi64>) -> tensor<1x1x2xi64>
    %77 = stablehlo.constant dense<4> : tensor<1x1x2xi64>
    %78 = "stablehlo.add"(%76, %77) : (tensor<1x1x2xi64>, tensor<1x1x2xi64>) -> tensor<1x1x2xi64>
    %79 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x1x1x2xi64>
    %80 = stablehlo.constant dense<2> : tensor<1x1x1x2xi64>
    %81 = "stablehlo.multiply"(%79, %80) : (tensor<1x1x1x2xi64>, tensor<1x1x1x2xi64>) -> tensor<1x1x1x2xi64>
    %82 = "stablehlo.broadcast_in_dim"(%78) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %83 = "stablehlo.broadcast_in_dim"(%81) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %84 = "stablehlo.add"(%82, %83) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %85 = "stablehlo.select"(%72, %84, %60) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %86 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 0, 1, 1>, limit_indices = array<i64: 1, 1, 4, 4>, strides = array<i64: 1, 1, 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
    %87 = "stablehlo.reshape"(%86) : (tensor<1x1x2x2xf32>) -> tensor<2x2xf32>
    %88 = "stablehlo.reshape"(%87) : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %89 = stablehlo.constant dense<0> : tensor<i64>
    %90 = "stablehlo.broadcast_in_dim"(%89) {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x1x2x2xi64>
    %91 = "stablehlo.compare"(%85, %90) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi1>
    %92 = "stablehlo.compare"(%73, %88) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %93 = "stablehlo.or"(%91, %92) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %94 = "stablehlo.compare"(%88, %88) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %95 = "stablehlo.compare"(%73, %73) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xi1>
    %96 = "stablehlo.and"(%94, %95) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %97 = "stablehlo.or"(%93, %96) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %98 = "stablehlo.select"(%97, %88, %73) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    %99 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x1x2xi64>
    %100 = stablehlo.constant dense<8> : tensor<1x1x2xi64>
    %101 = "stablehlo.multiply"(%99, %100) : (tensor<1x1x2xi64>, tensor<1x1x2xi64>) -> tensor<1x1x2xi64>
    %102 = stablehlo.constant dense<4> : tensor<1x1x2xi64>
    %103 = "stablehlo.add"(%101, %102) : (tensor<1x1x2xi64>, tensor<1x1x2xi64>) -> tensor<1x1x2xi64>
    %104 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x1x1x2xi64>
    %105 = stablehlo.constant dense<2> : tensor<1x1x1x2xi64>
    %106 = "stablehlo.multiply"(%104, %105) : (tensor<1x1x1x2xi64>, tensor<1x1x1x2xi64>) -> tensor<1x1x1x2xi64>
    %107 = stablehlo.constant dense<1> : tensor<1x1x1x2xi64>
    %108 = "stablehlo.add"(%106, %107) : (tensor<1x1x1x2xi64>, tensor<1x1x1x2xi64>) -> tensor<1x1x1x2xi64>
    %109 = "stablehlo.broadcast_in_dim"(%103) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %110 = "stablehlo.broadcast_in_dim"(%108) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x2xi64>) -> tensor<1x1x2x2xi64>
    %111 = "stablehlo.add"(%109, %110) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %112 = "stablehlo.select"(%97, %111, %85) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %113 = "stablehlo.reshape"(%2) : (tensor<1x1x4x4xf32>) -> tensor<1x1x16xf32>
    %114 = stablehlo.constant dense<16> : tensor<1x1x2x2xi64>
    %115 = "stablehlo.add"(%112, %114) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %116 = stablehlo.constant dense<0> : tensor<1x1x2x2xi64>
    %117 = "stablehlo.compare"(%112, %116) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi1>
    %118 = "stablehlo.select"(%117, %115, %112) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %119 = stablehlo.constant dense<0> : tensor<1x1x2x2xi64>
    %120 = "stablehlo.compare"(%118, %119) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi1>
    %121 = stablehlo.constant dense<16> : tensor<1x1x2x2xi64>
    %122 = "stablehlo.compare"(%118, %121) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi1>
    %123 = "stablehlo.or"(%120, %122) : (tensor<1x1x2x2xi1>, tensor<1x1x2x2xi1>) -> tensor<1x1x2x2xi1>
    %124 = stablehlo.constant dense<0> : tensor<i32>
    %125 = "stablehlo.compare"(%1, %124) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %129 = stablehlo.constant dense<false> : tensor<i1>
    %130 = "stablehlo.reduce"(%123, %129) ({
      ^bb0(%126: tensor<i1>, %127: tensor<i1>):
      %128 = "stablehlo.or"(%126, %127) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%128) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x2x2xi1>, tensor<i1>) -> tensor<i1>
    %131 = "stablehlo.and"(%125, %130) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %132 = stablehlo.constant dense<1> : tensor<i32>
    %133 = "stablehlo.select"(%131, %132, %1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %134 = stablehlo.constant dense<0> : tensor<1x1x2x2xi64>
    %135 = "stablehlo.maximum"(%118, %134) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %136 = stablehlo.constant dense<15> : tensor<1x1x2x2xi64>
    %137 = "stablehlo.minimum"(%135, %136) : (tensor<1x1x2x2xi64>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xi64>
    %138 = "stablehlo.gather"(%113, %137) {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = false} : (tensor<1x1x16xf32>, tensor<1x1x2x2xi64>) -> tensor<1x1x2x2xf32>
    %139 = "stablehlo.reshape"(%138) : (tensor<1x1x2x2xf32>) -> tensor<4xf32>
    %140 = "stablehlo.reshape"(%133) : (tensor<i32>) -> tensor<1xi32>
    return %139, %140 : tensor<4xf32>, tensor<1xi32>
  }
}
