#include "library/elf.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>

#include "errors.h"
#include "header.h"

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

/// Says what a file without an ELF header is, by its first bytes.
std::string describeForeign(const unsigned char* head, std::size_t size) {
  struct Kind {
    const char* mark;
    std::size_t length;
    const char* what;
  };
  constexpr Kind kinds[] = {
      {"!<arch>", 7, "an archive of object files; link them into one with g++ -shared"},
      {"MZ", 2, "a program or library for Windows; compile it on this system"},
      {"\xcf\xfa\xed\xfe", 4, "a program or library for macOS; compile it on this system"},
      {"PK\x03\x04", 4, "a zip archive"},
  };
  for (const Kind& kind : kinds) {
    if (size >= kind.length && std::memcmp(head, kind.mark, kind.length) == 0) {
      return std::string("it is ") + kind.what;
    }
  }
  return "it is not a shared library (no ELF header); compile it with g++ -shared -fPIC "
         "-fvisibility=hidden";
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

/// Reads items of a table; as many as the file has.
template <typename Item>
std::vector<Item> readItems(std::ifstream* file, uint64_t offset, uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  std::vector<Item> items(static_cast<std::size_t>(std::min(bytes, kMost) / sizeof(Item)));
  file->clear();
  file->seekg(static_cast<std::streamoff>(offset));
  file->read(reinterpret_cast<char*>(items.data()),
             static_cast<std::streamsize>(items.size() * sizeof(Item)));
  items.resize(static_cast<std::size_t>(file->gcount()) / sizeof(Item));
  return items;
}

/// Whether a mangled name is of the standard library: such data has one meaning in all libraries.
bool isOfStandardLibrary(const std::string& name) {
  std::size_t place = name.compare(0, 2, "_Z") == 0 ? 2 : 0;
  for (const char* prefix : {"GV", "TI", "TS", "TV", "Z", "N", "K"}) {
    const std::string text = prefix;
    if (name.compare(place, text.size(), text) == 0) place += text.size();
  }
  return name.compare(place, 2, "St") == 0 || name.compare(place, 10, "9__gnu_cxx") == 0;
}

}  // namespace

std::vector<std::string> uniqueSymbols(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const uint64_t size = file ? static_cast<uint64_t>(file.tellg()) : 0;
  const auto within = [size](const Elf64_Shdr& section) {
    return section.sh_offset <= size && section.sh_size <= size - section.sh_offset;
  };
  const auto headers = readItems<Elf64_Ehdr>(&file, 0, sizeof(Elf64_Ehdr));
  if (headers.empty() || headers[0].e_ident[EI_CLASS] != ELFCLASS64) return {};
  const auto sections = readItems<Elf64_Shdr>(&file, headers[0].e_shoff,
                                              uint64_t{headers[0].e_shnum} * sizeof(Elf64_Shdr));
  std::vector<std::string> names;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& texts = sections[section.sh_link];
    if (!within(section) || !within(texts)) continue;
    std::vector<char> text = readItems<char>(&file, texts.sh_offset, texts.sh_size);
    text.push_back('\0');
    for (const auto& symbol : readItems<Elf64_Sym>(&file, section.sh_offset, section.sh_size)) {
      const bool unique = ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE;
      if (!unique || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= text.size()) continue;
      const std::string name = &text[symbol.st_name];
      if (!isOfStandardLibrary(name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string readableSymbol(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return mxnet::ext::host::quoted(readable == nullptr ? name : readable.get());
}

void refuseLibrary(const std::string& path, const std::string& reason) {
  throw LoadError("cannot load library " + mxnet::ext::host::quoted(path) + ": " + reason);
}

void checkLibraryFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuseLibrary(path, "the file does not exist or cannot be read");
  Elf64_Ehdr header;
  std::memset(&header, 0, sizeof(header));
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (file.gcount() == 0) refuseLibrary(path, "the file is empty");
  if (file.bad() || file.gcount() < EI_NIDENT ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    refuseLibrary(path, describeForeign(header.e_ident, static_cast<std::size_t>(file.gcount())));
  }
  // e_type and e_machine have the same offset in 32-bit and 64-bit files.
  if (kMachine != EM_NONE && header.e_machine != kMachine) {
    refuseLibrary(path, "it was built for " + machineName(header.e_machine) + ", this is " +
                            machineName(kMachine));
  }
  if (header.e_type != ET_DYN) {
    const char* kind = header.e_type == ET_EXEC  ? "a program"
                       : header.e_type == ET_REL ? "an object file"
                                                 : "an ELF file of another kind";
    refuseLibrary(path, std::string("it is ") + kind +
                            ", not a library; compile it with g++ -shared -fPIC "
                            "-fvisibility=hidden");
  }
  if (header.e_ident[EI_CLASS] == ELFCLASS64) checkLength(path, &file, header);
}

}  // namespace passlib
