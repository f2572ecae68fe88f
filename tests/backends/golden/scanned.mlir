module @eshkol {
  func.func public @main(%arg0: tensor<1xf32>, %arg1: tensor<6xf32>) -> (tensor<1xf32>, tensor<6xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<1xf32>) -> tensor<f32>
    %3 = stablehlo.constant dense<0x00000000> : tensor<6xf32>
    %4 = stablehlo.constant dense<0> : tensor<i64>
    %5 = stablehlo.constant dense<6> : tensor<i64>
    %6 = stablehlo.constant dense<1> : tensor<i64>
    %21:3 = "stablehlo.while"(%2, %3, %4) ({
      ^bb0(%8: tensor<f32>, %9: tensor<6xf32>, %10: tensor<i64>):
      %20 = "stablehlo.compare"(%10, %5) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%20) : (tensor<i1>) -> ()
    }, {
      ^bb0(%8: tensor<f32>, %9: tensor<6xf32>, %10: tensor<i64>):
      %11 = stablehlo.constant dense<0> : tensor<i64>
      %12 = "stablehlo.dynamic_slice"(%arg1, %10) {slice_sizes = array<i64: 1>} : (tensor<6xf32>, tensor<i64>) -> tensor<1xf32>
      %13 = "stablehlo.reshape"(%12) : (tensor<1xf32>) -> tensor<f32>
      %14 = "stablehlo.multiply"(%8, %13) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %15 = "stablehlo.add"(%8, %13) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %16 = "stablehlo.reshape"(%14) : (tensor<f32>) -> tensor<1xf32>
      %17 = stablehlo.constant dense<0> : tensor<i64>
      %18 = "stablehlo.dynamic_update_slice"(%9, %16, %10) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
      %19 = "stablehlo.add"(%10, %6) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%15, %18, %19) : (tensor<f32>, tensor<6xf32>, tensor<i64>) -> ()
    }) : (tensor<f32>, tensor<6xf32>, tensor<i64>) -> (tensor<f32>, tensor<6xf32>, tensor<i64>)
    %22 = "stablehlo.reshape"(%21#0) : (tensor<f32>) -> tensor<1xf32>
    return %22, %21#1 : tensor<1xf32>, tensor<6xf32>
  }
}
