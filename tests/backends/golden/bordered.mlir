module @eshkol {
  func.func public @main(%arg0: tensor<6xf32>) -> (tensor<18xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<6xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %4 = "stablehlo.reverse"(%3) {dimensions = array<i64: 0>} : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %5 = "stablehlo.concatenate"(%4, %2) {dimension = 0 : i64} : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
    %6 = "stablehlo.slice"(%5) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 3>, strides = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<3x2xf32>
    %7 = "stablehlo.reverse"(%6) {dimensions = array<i64: 1>} : (tensor<3x2xf32>) -> tensor<3x2xf32>
    %8 = "stablehlo.slice"(%5) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 2>, strides = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<3x1xf32>
    %9 = "stablehlo.reverse"(%8) {dimensions = array<i64: 1>} : (tensor<3x1xf32>) -> tensor<3x1xf32>
    %10 = "stablehlo.concatenate"(%7, %5, %9) {dimension = 1 : i64} : (tensor<3x2xf32>, tensor<3x3xf32>, tensor<3x1xf32>) -> tensor<3x6xf32>
    %11 = "stablehlo.reshape"(%10) : (tensor<3x6xf32>) -> tensor<18xf32>
    return %11 : tensor<18xf32>
  }
}
