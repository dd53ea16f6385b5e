#include "tests/table/made_up_table.hpp"

#include <cstring>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

// Either of Arrow's structs, its children and what they need.
template <typename Arrow>
struct MadeUpOwner {
  std::string name, format;
  std::vector<std::shared_ptr<void>> kept;
  std::vector<const void*> buffers;
  std::vector<Arrow> children, dictionary;
  std::vector<Arrow*> pointers;
};

template <typename Arrow>
void release_made_up(Arrow* each) {
  auto* owner = static_cast<MadeUpOwner<Arrow>*>(each->private_data);
  for (auto* all : {&owner->children, &owner->dictionary})
    for (Arrow& child : *all)
      if (child.release != nullptr) child.release(&child);
  delete owner;
  each->release = nullptr;
}

template <typename Arrow>
Arrow with_owner(MadeUpOwner<Arrow>* owner) {
  Arrow made{};
  for (Arrow& child : owner->children) owner->pointers.push_back(&child);
  made.n_children = static_cast<std::int64_t>(owner->children.size());
  made.children = owner->pointers.data();
  made.dictionary = owner->dictionary.empty() ? nullptr : owner->dictionary.data();
  made.private_data = owner;
  made.release = release_made_up<Arrow>;
  return made;
}

ArrowArray array_of_column(const MadeUpColumn& column) {
  auto* owner = new MadeUpOwner<ArrowArray>;
  owner->kept = column.buffers;
  for (const auto& each : column.buffers) owner->buffers.push_back(each.get());
  for (const MadeUpColumn& child : column.children) owner->children.push_back(array_of_column(child));
  for (const MadeUpColumn& values : column.dictionary) owner->dictionary.push_back(array_of_column(values));
  ArrowArray array = with_owner(owner);
  array.length = column.rows, array.null_count = column.nulls, array.offset = column.offset;
  array.n_buffers = static_cast<std::int64_t>(owner->buffers.size());
  array.buffers = owner->buffers.data();
  return array;
}

ArrowSchema schema_of_column(const MadeUpColumn& column) {
  auto* owner = new MadeUpOwner<ArrowSchema>;
  owner->name = column.name, owner->format = column.format;
  for (const MadeUpColumn& child : column.children) owner->children.push_back(schema_of_column(child));
  for (const MadeUpColumn& values : column.dictionary) owner->dictionary.push_back(schema_of_column(values));
  ArrowSchema schema = with_owner(owner);
  schema.format = owner->format.c_str(), schema.name = owner->name.c_str();
  return schema;
}

template <typename T>
const T* buffer_in(const ArrowArray& array, int number) {
  return static_cast<const T*>(array.buffers[number]);
}

}  // namespace

std::shared_ptr<void> bytes_of_values(const void* values, std::size_t bytes) {
  auto block = std::make_shared<std::vector<std::uint64_t>>(bytes / 8 + 1);
  std::memcpy(block->data(), values, bytes);
  return {block, block->data()};
}

Batch made_batch(const std::vector<MadeUpColumn>& columns, std::int64_t rows, std::int64_t offset) {
  ArrowArray array = array_of_column({"", "+s", rows, 0, offset, {nullptr}, columns});
  return Batch(array);
}

MadeUpSchema::MadeUpSchema(const std::vector<MadeUpColumn>& columns)
    : schema_(schema_of_column({"", "+s", 0, 0, 0, {}, columns})) {}

std::vector<MadeUpColumn> KeysAndTexts::columns(const std::vector<std::int64_t>& keys) {
  const auto rows = static_cast<std::int64_t>(keys.size());
  std::vector<std::int32_t> offsets{0};
  std::vector<std::uint8_t> valid(keys.size() / 8 + 1);
  std::string texts;
  std::int64_t nulls = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    texts += text_of(keys[i]);
    offsets.push_back(static_cast<std::int32_t>(texts.size()));
    if (keys[i] % 7 == 0)
      ++nulls;
    else
      valid[i / 8] = static_cast<std::uint8_t>(valid[i / 8] | 1u << (i % 8));
  }
  return {{"key", "l", rows, 0, 0, {nullptr, buffer_of(keys)}},
          {"text",
           "u",
           rows,
           nulls,
           0,
           {buffer_of(valid), buffer_of(offsets), bytes_of_values(texts.data(), texts.size())}}};
}

std::vector<std::int64_t> KeysAndTexts::keys_of(const Batch& batch) {
  const ArrowArray &key = *batch.array().children[0], &text = *batch.array().children[1];
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i < batch.rows(); ++i) {
    keys.push_back(buffer_in<std::int64_t>(key, 1)[key.offset + i]);
    const auto* valid = buffer_in<std::uint8_t>(text, 0);
    const auto* offsets = buffer_in<std::int32_t>(text, 1) + text.offset + i;
    const std::int64_t bit = text.offset + i;
    const bool is_null = valid != nullptr && (valid[bit / 8] >> (bit % 8) & 1) == 0;
    require_that(is_null == (keys.back() % 7 == 0), "nulls moved");
    const std::string found(buffer_in<char>(text, 2) + offsets[0], static_cast<std::size_t>(offsets[1] - offsets[0]));
    require_that(found == text_of(keys.back()), "texts moved");
  }
  return keys;
}

}  // namespace waywiser
