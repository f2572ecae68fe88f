module @eshkol {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<3xi64>) -> (tensor<6xf32>, tensor<1xi32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<8xf32>) -> tensor<4x2xf32>
    %3 = stablehlo.constant dense<4> : tensor<3xi64>
    %4 = "stablehlo.add"(%arg1, %3) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %5 = stablehlo.constant dense<0> : tensor<3xi64>
    %6 = "stablehlo.compare"(%arg1, %5) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %7 = "stablehlo.select"(%6, %4, %arg1) : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %8 = stablehlo.constant dense<0> : tensor<3xi64>
    %9 = "stablehlo.compare"(%7, %8) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %10 = stablehlo.constant dense<4> : tensor<3xi64>
    %11 = "stablehlo.compare"(%7, %10) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %12 = "stablehlo.or"(%9, %11) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
    %13 = stablehlo.constant dense<0> : tensor<i32>
    %14 = "stablehlo.compare"(%1, %13) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %18 = stablehlo.constant dense<false> : tensor<i1>
    %19 = "stablehlo.reduce"(%12, %18) ({
      ^bb0(%15: tensor<i1>, %16: tensor<i1>):
      %17 = "stablehlo.or"(%15, %16) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%17) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
    %20 = "stablehlo.and"(%14, %19) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %21 = stablehlo.constant dense<1> : tensor<i32>
    %22 = "stablehlo.select"(%20, %21, %1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %23 = stablehlo.constant dense<0> : tensor<3xi64>
    %24 = "stablehlo.maximum"(%7, %23) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %25 = stablehlo.constant dense<3> : tensor<3xi64>
    %26 = "stablehlo.minimum"(%24, %25) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %27 = "stablehlo.gather"(%2, %26) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false} : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
    %28 = "stablehlo.reshape"(%27) : (tensor<3x2xf32>) -> tensor<6xf32>
    %29 = "stablehlo.reshape"(%22) : (tensor<i32>) -> tensor<1xi32>
    return %28, %29 : tensor<6xf32>, tensor<1xi32>
  }
}
