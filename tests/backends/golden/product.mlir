module @eshkol {
  func.func public @main(%arg0: tensor<6xf32>, %arg1: tensor<12xf32>) -> (tensor<1xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = "stablehlo.reshape"(%arg0) : (tensor<6xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.reshape"(%arg1) : (tensor<12xf32>) -> tensor<3x4xf32>
    %4 = "stablehlo.dot_general"(%2, %3) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %8 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %9 = "stablehlo.reduce"(%4, %8) ({
      ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
    %10 = "stablehlo.reshape"(%9) : (tensor<f32>) -> tensor<1xf32>
    return %10 : tensor<1xf32>
  }
}
