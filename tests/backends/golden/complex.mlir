module @eshkol {
  func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<6xf32>) -> tensor<3x2xf32>
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 3, 1>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
    %4 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 2>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<3x1xf32>
    %5 = "stablehlo.reshape"(%3) : (tensor<3x1xf32>) -> tensor<3xf32>
    %6 = "stablehlo.reshape"(%4) : (tensor<3x1xf32>) -> tensor<3xf32>
    %7 = "stablehlo.complex"(%5, %6) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xcomplex<f32>>
    %8 = "stablehlo.real"(%7) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %9 = "stablehlo.imag"(%7) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %10 = "stablehlo.real"(%7) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %11 = "stablehlo.imag"(%7) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %12 = "stablehlo.multiply"(%8, %10) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %13 = "stablehlo.multiply"(%9, %11) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %14 = "stablehlo.subtract"(%12, %13) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %15 = "stablehlo.multiply"(%8, %11) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %16 = "stablehlo.multiply"(%9, %10) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %17 = "stablehlo.add"(%15, %16) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %18 = "stablehlo.complex"(%14, %17) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xcomplex<f32>>
    %19 = "stablehlo.real"(%18) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %20 = "stablehlo.reshape"(%19) : (tensor<3xf32>) -> tensor<3x1xf32>
    %21 = "stablehlo.imag"(%18) : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %22 = "stablehlo.reshape"(%21) : (tensor<3xf32>) -> tensor<3x1xf32>
    %23 = "stablehlo.concatenate"(%20, %22) {dimension = 1 : i64} : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
    %24 = "stablehlo.reshape"(%23) : (tensor<3x2xf32>) -> tensor<6xf32>
    return %24 : tensor<6xf32>
  }
}
