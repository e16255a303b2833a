// Runs the case named on the command line; without one, lists them.
#include <iostream>

#include "check.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& entry : check::cases()) std::cout << entry.first << "\n";
    return 0;
  }
  try {
    check::cases().at(argv[1])();
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
  return 0;
}
