#include "library/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>

#include "errors.h"
#include "lib_api.h"

namespace passlib {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr unsigned kMachine = EM_PPC64;
#elif defined(__riscv)
constexpr unsigned kMachine = EM_RISCV;
#elif defined(__s390x__)
constexpr unsigned kMachine = EM_S390;
#else
constexpr unsigned kMachine = EM_NONE;  // leave it to the dynamic linker
#endif

std::string machineName(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "64-bit ARM";
    case EM_ARM:
      return "32-bit ARM";
    case EM_PPC64:
      return "64-bit POWER";
    case EM_RISCV:
      return "RISC-V";
    case EM_S390:
      return "IBM Z";
    default:
      return "machine type " + std::to_string(machine);
  }
}

/// Refuses a truncated file, which the dynamic linker would map and then crash on.
void checkLength(const std::string& path, std::ifstream* file, const Elf64_Ehdr& header) {
  file->clear();
  file->seekg(0, std::ios::end);
  const auto size = static_cast<uint64_t>(file->tellg());
  uint64_t needed = sizeof(header);
  const auto need = [&needed](uint64_t begin, uint64_t bytes) {
    const uint64_t most = std::numeric_limits<uint64_t>::max();
    needed = std::max(needed, begin > most - bytes ? most : begin + bytes);
  };
  need(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (header.e_shoff != 0) need(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  for (unsigned i = 0; needed <= size && i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memset(&segment, 0, sizeof(segment));
    file->seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof(segment)));
    file->read(reinterpret_cast<char*>(&segment), sizeof(segment));
    if (segment.p_type == PT_LOAD) need(segment.p_offset, segment.p_filesz);
  }
  if (needed <= size) return;
  refuseLibrary(path, "the file is truncated: it has " + std::to_string(size) +
                          " bytes and should have at least " + std::to_string(needed));
}

}  // namespace

void refuseLibrary(const std::string& path, const std::string& reason) {
  throw LoadError("cannot load library " + mxnet::ext::detail::quoted(path) + ": " + reason);
}

void checkLibraryFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuseLibrary(path, "the file does not exist or cannot be read");
  Elf64_Ehdr header;
  std::memset(&header, 0, sizeof(header));
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (file.bad() || file.gcount() < EI_NIDENT ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    refuseLibrary(path,
                  "it is not a shared library (no ELF header); compile it with g++ -shared -fPIC");
  }
  // e_type and e_machine have the same offset in 32-bit and 64-bit files.
  if (kMachine != EM_NONE && header.e_machine != kMachine) {
    refuseLibrary(path, "it was built for " + machineName(header.e_machine) + ", this is " +
                            machineName(kMachine));
  }
  if (header.e_type != ET_DYN) {
    refuseLibrary(path,
                  "it is an ELF file, but not a shared library; compile it with g++ -shared -fPIC");
  }
  if (header.e_ident[EI_CLASS] == ELFCLASS64) checkLength(path, &file, header);
}

}  // namespace passlib
