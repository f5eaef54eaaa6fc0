// Runs the package that package.py makes, without Python: ./build/settle settle.pt2 8 4 2 -1 0 1
// The numbers are rows of three. What the model computed is printed, or the error that it raised.

#include <cstdlib>
#include <iostream>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

int main(int count, char **texts) {
  if (count < 5 || (count - 2) % 3 != 0) {
    std::cerr << "usage: " << texts[0] << " PACKAGE NUMBER...   (rows of three)\n";
    return 2;
  }
  std::vector<float> numbers;
  for (int at = 2; at < count; ++at) numbers.push_back(std::strtof(texts[at], nullptr));
  const int64_t rows = static_cast<int64_t>(numbers.size()) / 3;
  const at::Tensor x = at::from_blob(numbers.data(), {rows, 3}).clone();

  const c10::InferenceMode inference;
  try {
    torch::inductor::AOTIModelPackageLoader model(texts[1]);
    const std::vector<at::Tensor> found = model.run({x});
    std::cout << found[1].item<int64_t>() << " steps\n";
    const at::Tensor y = found[0].contiguous();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < 3; ++column)
        std::cout << y[row][column].item<float>() << (column < 2 ? ' ' : '\n');
  } catch (const c10::Error &error) {
    std::cerr << "error: " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
