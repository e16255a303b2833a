#include "platform/system.h"

#if PASSLIB_LINUX

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "platform/library_file.h"

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

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
constexpr unsigned char kByteOrder = ELFDATA2MSB;
#else
constexpr unsigned char kByteOrder = ELFDATA2LSB;
#endif

/// The sections of a 64-bit file. Sizes and places that do not lie in the file count as empty.
class Sections {
 public:
  explicit Sections(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    file_.seekg(0, std::ios::end);
    if (file_) size_ = static_cast<uint64_t>(file_.tellg());
    const auto headers = readItems<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
    if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return;
    header_ = headers[0];
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != kByteOrder) return;
    sections_ =
        readItems<Elf64_Shdr>(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr));
  }

  const Elf64_Ehdr& header() const { return header_; }
  bool empty() const { return sections_.empty(); }
  const std::string& path() const { return path_; }

  /// The first section of a type, and of a name where one is given; a file has one of each.
  const Elf64_Shdr* find(uint32_t type, const std::string& name = "") {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != type) continue;
      if (name.empty() || nameOf(section) == name) return &section;
    }
    return nullptr;
  }

  template <typename Item>
  std::vector<Item> itemsOf(const Elf64_Shdr* section) {
    if (section == nullptr) return {};
    return readItems<Item>(section->sh_offset, section->sh_size);
  }

  /// The texts that a section refers to.
  std::vector<char> textsOf(const Elf64_Shdr* section) {
    if (section == nullptr || section->sh_link >= sections_.size()) return {};
    return itemsOf<char>(&sections_[section->sh_link]);
  }

 private:
  std::string nameOf(const Elf64_Shdr& section) {
    if (header_.e_shstrndx >= sections_.size()) return "";
    const Elf64_Shdr& names = sections_[header_.e_shstrndx];
    constexpr uint64_t kMost = 64;
    if (section.sh_name >= names.sh_size || names.sh_offset > size_) return "";
    const uint64_t bytes = std::min(names.sh_size - section.sh_name, kMost);
    const auto text = readItems<char>(names.sh_offset + section.sh_name, bytes);
    return std::string(text.begin(), std::find(text.begin(), text.end(), '\0'));
  }

  template <typename Item>
  std::vector<Item> readItems(uint64_t offset, uint64_t bytes) {
    if (offset > size_ || bytes > size_ - offset) return {};
    std::vector<Item> items(static_cast<std::size_t>(bytes / sizeof(Item)));
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(reinterpret_cast<char*>(items.data()),
               static_cast<std::streamsize>(items.size() * sizeof(Item)));
    items.resize(static_cast<std::size_t>(file_.gcount()) / sizeof(Item));
    return items;
  }

  std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Shdr> sections_;
};

/// Texts of a table by their offset. Many names may share the bytes of one long text: together they
/// are bounded.
class Names {
 public:
  Names(std::string path, std::vector<char> texts)
      : path_(std::move(path)), texts_(std::move(texts)), left_(8 * texts_.size() + 4096) {}

  std::string at(uint64_t offset) {
    if (offset >= texts_.size()) return "";
    const auto begin = texts_.begin() + static_cast<std::ptrdiff_t>(offset);
    const auto limit =
        begin + static_cast<std::ptrdiff_t>(std::min<uint64_t>(left_, texts_.size() - offset));
    const auto end = std::find(begin, limit, '\0');
    if (end == limit && left_ < texts_.size() - offset) {
      refuseLibrary(path_, "the names of its symbols overlap");
    }
    left_ -= static_cast<uint64_t>(end - begin);
    return std::string(begin, end);
  }

 private:
  std::string path_;
  std::vector<char> texts_;
  uint64_t left_;
};

/// The versions of symbols that a library needs of others.
std::vector<std::string> neededVersions(Sections* file) {
  const Elf64_Shdr* section = file->find(SHT_GNU_verneed);
  const std::vector<char> bytes = file->itemsOf<char>(section);
  Names names(file->path(), file->textsOf(section));
  std::vector<std::string> versions;
  const auto read = [&bytes](uint64_t offset, auto* item) {
    if (offset > bytes.size() || sizeof(*item) > bytes.size() - offset) return false;
    std::memcpy(item, &bytes[static_cast<std::size_t>(offset)], sizeof(*item));
    return true;
  };
  // Chains may run into each other in a damaged file: as many steps as the section has room for.
  std::size_t steps = bytes.size() / sizeof(Elf64_Vernaux);
  Elf64_Verneed need;
  for (uint64_t at = 0; steps > 0 && read(at, &need); at += need.vn_next) {
    Elf64_Vernaux version;
    uint64_t next = at + need.vn_aux;
    for (unsigned i = 0; i < need.vn_cnt && steps > 0 && read(next, &version); ++i, --steps) {
      versions.push_back(names.at(version.vna_name));
      next += version.vna_next;
    }
    if (need.vn_next == 0) break;
    --steps;
  }
  return versions;
}

/// Returns the texts of the section .comment, in which compilers and linkers name themselves.
std::vector<std::string> statedCompilers(Sections* file) {
  const std::vector<char> text = file->itemsOf<char>(file->find(SHT_PROGBITS, ".comment"));
  std::vector<std::string> compilers;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find(at, text.end(), '\0');
    if (end != at) compilers.emplace_back(at, end);
    at = end == text.end() ? end : end + 1;
  }
  return compilers;
}

void sortOnce(std::vector<std::string>* texts) {
  std::sort(texts->begin(), texts->end());
  texts->erase(std::unique(texts->begin(), texts->end()), texts->end());
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

/// Refuses a file that is not a shared library of a machine: of any, where `machine` is null.
void checkLibraryKind(const std::string& path, const unsigned* machine) {
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
  if (machine != nullptr && header.e_machine != *machine) {
    refuseLibrary(path, "it was built for " + machineName(header.e_machine) + ", this is " +
                            machineName(*machine));
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

}  // namespace

std::vector<std::string> uniqueSymbols(const std::string& path) {
  Sections file(path);
  const Elf64_Shdr* section = file.find(SHT_DYNSYM);
  Names texts(path, file.textsOf(section));
  std::vector<std::string> names;
  for (const auto& symbol : file.itemsOf<Elf64_Sym>(section)) {
    const bool unique = ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE;
    if (!unique || symbol.st_shndx == SHN_UNDEF) continue;
    const std::string name = texts.at(symbol.st_name);
    if (!isOfStandardLibrary(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

LibraryFile readLibraryFile(const std::string& path) {
  checkLibraryKind(path, nullptr);
  Sections file(path);
  LibraryFile facts;
  facts.machine = machineName(file.header().e_machine);
  if (file.empty()) {
    refuseLibrary(path, "it has no table of sections that can be read here (it is for " +
                            facts.machine + ")");
  }
  const Elf64_Shdr* symbols = file.find(SHT_DYNSYM);
  Names names(path, file.textsOf(symbols));
  for (const auto& symbol : file.itemsOf<Elf64_Sym>(symbols)) {
    const std::string name = names.at(symbol.st_name);
    const bool is_shared = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
    if (name.empty() || !is_shared) continue;
    (symbol.st_shndx == SHN_UNDEF ? facts.imports : facts.exports).push_back(name);
  }
  const Elf64_Shdr* dynamic = file.find(SHT_DYNAMIC);
  Names libraries(path, file.textsOf(dynamic));
  for (const auto& entry : file.itemsOf<Elf64_Dyn>(dynamic)) {
    if (entry.d_tag == DT_NEEDED) facts.needed.push_back(libraries.at(entry.d_un.d_val));
  }
  facts.versions = neededVersions(&file);
  facts.compilers = statedCompilers(&file);
  for (auto* list : {&facts.exports, &facts.imports, &facts.versions, &facts.compilers}) {
    sortOnce(list);
  }
  return facts;
}

void checkLibraryFile(const std::string& path) {
  checkLibraryKind(path, kMachine == EM_NONE ? nullptr : &kMachine);
}

}  // namespace passlib

#endif  // PASSLIB_LINUX
