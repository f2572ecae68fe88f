module @eshkol {
  func.func public @main(%arg0: tensor<1xui8>, %arg1: tensor<4xf32>) -> (tensor<4xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.constant dense<0> : tensor<1xui8>
    %3 = "stablehlo.compare"(%arg0, %2) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<1xui8>, tensor<1xui8>) -> tensor<1xi1>
    %4 = "stablehlo.reshape"(%3) : (tensor<1xi1>) -> tensor<i1>
    %9 = "stablehlo.if"(%4) ({
      %5 = stablehlo.constant dense<0x3F800000> : tensor<f32>
      %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %7 = "stablehlo.add"(%arg1, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%7) : (tensor<4xf32>) -> ()
    }, {
      %8 = "stablehlo.multiply"(%arg1, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    return %9 : tensor<4xf32>
  }
}
