module @eshkol {
  func.func public @main(%arg0: tensor<10xf32>) -> (tensor<10xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<10xf32>) -> tensor<2x5xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<2x5xf32>) -> tensor<2x1x5xf32>
    %7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = "stablehlo.reduce"(%3, %7) ({
      ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = "stablehlo.maximum"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 2>} : (tensor<2x1x5xf32>, tensor<f32>) -> tensor<2x1xf32>
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<2x5xf32>
    %10 = "stablehlo.subtract"(%2, %9) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %11 = "stablehlo.exponential"(%10) : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %12 = "stablehlo.reshape"(%11) : (tensor<2x5xf32>) -> tensor<2x1x5xf32>
    %16 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %17 = "stablehlo.reduce"(%12, %16) ({
      ^bb0(%13: tensor<f32>, %14: tensor<f32>):
      %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%15) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 2>} : (tensor<2x1x5xf32>, tensor<f32>) -> tensor<2x1xf32>
    %18 = stablehlo.constant dense<0x3F800000> : tensor<f32>
    %19 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x1xf32>
    %20 = "stablehlo.divide"(%19, %17) : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    %21 = "stablehlo.broadcast_in_dim"(%20) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<2x5xf32>
    %22 = "stablehlo.multiply"(%11, %21) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %23 = "stablehlo.reshape"(%22) : (tensor<2x5xf32>) -> tensor<10xf32>
    return %23 : tensor<10xf32>
  }
}
