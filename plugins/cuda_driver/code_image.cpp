#include "code_image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace waywiser {
namespace {

constexpr std::uint32_t fatbin_mark = 0xba55ed50, wrapper_mark = 0x466243b1;

struct FatbinHead {
  std::uint32_t mark;
  std::uint16_t version, head_bytes;
  std::uint64_t body_bytes;
};
struct FatbinWrapper {
  std::uint32_t mark, version;
  const void* fatbin;
};

template <typename Head>
Head head_at(const void* image) {
  Head head;
  std::memcpy(&head, image, sizeof head);
  return head;
}

// Up to the end of the last section and of both tables.
std::size_t bytes_of_elf(const char* image) {
  const auto head = head_at<Elf64_Ehdr>(image);
  std::size_t end = std::max<std::size_t>({sizeof head, head.e_phoff + std::size_t{head.e_phentsize} * head.e_phnum,
                                           head.e_shoff + std::size_t{head.e_shentsize} * head.e_shnum});
  for (std::size_t i = 0; i < head.e_shnum; ++i) {
    const auto section = head_at<Elf64_Shdr>(image + head.e_shoff + i * head.e_shentsize);
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace

std::string code_at(const void* image) {
  if (image == nullptr) return "";
  const auto* bytes = static_cast<const char*>(image);
  if (std::strncmp(bytes, ELFMAG, SELFMAG) == 0) return {bytes, bytes_of_elf(bytes)};
  // The shortest text that is no mark has fewer than four bytes.
  if (::strnlen(bytes, sizeof fatbin_mark) < sizeof fatbin_mark) return bytes;
  const auto mark = head_at<std::uint32_t>(bytes);
  if (mark == wrapper_mark) return code_at(head_at<FatbinWrapper>(bytes).fatbin);
  if (mark != fatbin_mark) return bytes;
  const auto head = head_at<FatbinHead>(bytes);
  return {bytes, head.head_bytes + head.body_bytes};
}

}  // namespace waywiser
