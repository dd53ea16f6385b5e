#include "waywiser/table/column_type.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "waywiser/base/error.hpp"
#include "waywiser/table/arrow_interface.h"

namespace waywiser {
namespace {

constexpr int deepest = 32;  // columns in columns

struct PlainFormat {
  std::string_view format, words;
  ColumnLayout layout;
  Bytes width;
};
constexpr PlainFormat plain_formats[] = {
    {"n", "null", ColumnLayout::null, 0},
    {"b", "bool", ColumnLayout::boolean, 0},
    {"c", "int8", ColumnLayout::fixed, 1},
    {"C", "uint8", ColumnLayout::fixed, 1},
    {"s", "int16", ColumnLayout::fixed, 2},
    {"S", "uint16", ColumnLayout::fixed, 2},
    {"i", "int32", ColumnLayout::fixed, 4},
    {"I", "uint32", ColumnLayout::fixed, 4},
    {"l", "int64", ColumnLayout::fixed, 8},
    {"L", "uint64", ColumnLayout::fixed, 8},
    {"e", "float16", ColumnLayout::fixed, 2},
    {"f", "float32", ColumnLayout::fixed, 4},
    {"g", "float64", ColumnLayout::fixed, 8},
    {"z", "binary", ColumnLayout::binary, 4},
    {"Z", "large_binary", ColumnLayout::binary, 8},
    {"u", "string", ColumnLayout::binary, 4},
    {"U", "large_string", ColumnLayout::binary, 8},
    {"tdD", "date32", ColumnLayout::fixed, 4},
    {"tdm", "date64", ColumnLayout::fixed, 8},
    {"tts", "time32[s]", ColumnLayout::fixed, 4},
    {"ttm", "time32[ms]", ColumnLayout::fixed, 4},
    {"ttu", "time64[us]", ColumnLayout::fixed, 8},
    {"ttn", "time64[ns]", ColumnLayout::fixed, 8},
    {"tDs", "duration[s]", ColumnLayout::fixed, 8},
    {"tDm", "duration[ms]", ColumnLayout::fixed, 8},
    {"tDu", "duration[us]", ColumnLayout::fixed, 8},
    {"tDn", "duration[ns]", ColumnLayout::fixed, 8},
    {"tiM", "months", ColumnLayout::fixed, 4},
    {"tiD", "days and milliseconds", ColumnLayout::fixed, 8},
    {"tin", "months, days and nanoseconds", ColumnLayout::fixed, 16},
    {"+l", "list", ColumnLayout::list, 4},
    {"+L", "large_list", ColumnLayout::list, 8},
    {"+m", "map", ColumnLayout::list, 4},
    {"+s", "struct", ColumnLayout::structure, 0},
};

const PlainFormat* plain(std::string_view format) {
  const auto* found = std::ranges::find(plain_formats, format, &PlainFormat::format);
  return found == std::end(plain_formats) ? nullptr : found;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > INT32_MAX) return {};
  return number;
}

// "d:19,10" has 128 bits, "d:19,10,256" says how many.
std::optional<Bytes> decimal_width(std::string_view parameters) {
  const std::size_t comma = parameters.find(','), second = parameters.find(',', comma + 1);
  if (comma == std::string_view::npos) return {};
  if (second == std::string_view::npos) return 16;
  const auto bits = number_of(parameters.substr(second + 1));
  if (!bits || (*bits != 32 && *bits != 64 && *bits != 128 && *bits != 256)) return {};
  return static_cast<Bytes>(*bits / 8);
}

// False: the format is not served.
bool read_format(ColumnType& type) {
  const std::string_view format = type.format;
  if (const PlainFormat* known = plain(format)) {
    type.layout = known->layout;
    type.width = known->width;
    return true;
  }
  const bool is_time = format.size() >= 4 && format.starts_with("ts") && format[3] == ':' &&
                       std::string_view("smun").find(format[2]) != std::string_view::npos;
  std::optional<Bytes> width;
  if (is_time) width = 8;
  if (format.starts_with("d:")) width = decimal_width(format.substr(2));
  if (format.starts_with("w:"))
    if (const auto bytes = number_of(format.substr(2))) width = static_cast<Bytes>(*bytes);
  if (format.starts_with("+w:"))
    if (const auto elements = number_of(format.substr(3))) {
      type.layout = ColumnLayout::fixed_list;
      type.elements = *elements;
      return true;
    }
  type.layout = ColumnLayout::fixed;
  type.width = width.value_or(0);
  return width.has_value();
}

[[noreturn]] void refuse_column(ErrorKind kind, const std::string& path, const std::string& why) {
  throw Error(kind, "column " + quoted(path, 60) + ": " + why);
}

// As many as it says.
bool has_children(const ArrowSchema& schema) {
  if (schema.n_children == 0) return true;
  return schema.n_children > 0 && schema.children != nullptr &&
         std::none_of(schema.children, schema.children + schema.n_children,
                      [](const ArrowSchema* child) { return child == nullptr; });
}

std::size_t children_of(ColumnLayout layout, const ArrowSchema& schema) {
  if (layout == ColumnLayout::structure) return static_cast<std::size_t>(schema.n_children);
  return layout == ColumnLayout::list || layout == ColumnLayout::fixed_list ? 1 : 0;
}

ColumnType parse_column(const ArrowSchema& schema, const std::string& above, int depth) {
  ColumnType type;
  type.name = schema.name == nullptr ? "" : schema.name;
  const std::string path = above + type.name;
  if (schema.format == nullptr || schema.release == nullptr)
    refuse_column(ErrorKind::invalid_input, path, "the schema is not one of Arrow");
  type.format = schema.format;
  if (!read_format(type) || depth > deepest)
    refuse_column(ErrorKind::unavailable, path, "its type, " + quoted(type.format, 40) + " in Arrow, is not served");
  if (!has_children(schema) || static_cast<std::size_t>(schema.n_children) != children_of(type.layout, schema))
    refuse_column(ErrorKind::invalid_input, path, std::to_string(schema.n_children) + " columns lie in it");
  if (schema.dictionary != nullptr) {
    if (type.layout != ColumnLayout::fixed || type.format.size() != 1)
      refuse_column(ErrorKind::invalid_input, path, "the indices of its dictionary are no integers");
    type.is_dictionary = true;
    type.is_ordered = (schema.flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0;
    type.children.push_back(parse_column(*schema.dictionary, path + "/", depth + 1));
  }
  for (std::int64_t i = 0; i < schema.n_children; ++i)
    type.children.push_back(parse_column(*schema.children[i], path + "/", depth + 1));
  return type;
}

std::string format_words(const ColumnType& type) {
  if (const PlainFormat* known = plain(type.format)) return std::string(known->words);
  const std::string parameters = type.format.substr(type.format.find(':') + 1);
  if (type.format.starts_with("ts"))
    return "timestamp[" + type.format.substr(2, 1) + (parameters.empty() ? "]" : ", " + parameters + "]");
  if (type.layout == ColumnLayout::fixed_list) return "fixed_list[" + parameters + "]";
  return (type.format.starts_with("d:") ? "decimal[" : "fixed_binary[") + parameters + "]";
}

}  // namespace

std::size_t ColumnType::nodes() const {
  std::size_t all = 1;
  for (const ColumnType& child : children) all += child.nodes();
  return all;
}

std::string ColumnType::words() const {
  if (is_dictionary)
    return (is_ordered ? "ordered dictionary<" : "dictionary<") + format_words(*this) + " to " +
           children.front().words() + ">";
  if (children.empty() && layout != ColumnLayout::structure) return format_words(*this);
  std::string inner;
  for (const ColumnType& child : children) inner += (inner.empty() ? "" : ", ") + child.name + ": " + child.words();
  return format_words(*this) + "<" + inner + ">";
}

std::size_t TableSchema::nodes() const {
  std::size_t all = 0;
  for (const ColumnType& column : columns) all += column.nodes();
  return all;
}

std::vector<int> TableSchema::places_of(const std::vector<std::string>& names) const {
  std::vector<int> places;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(columns, name, &ColumnType::name);
    if (found == columns.end()) throw Error(ErrorKind::invalid_input, "there is no column " + quoted(name, 60));
    places.push_back(static_cast<int>(found - columns.begin()));
  }
  return places;
}

TableSchema parse_schema(const ArrowSchema& schema) {
  if (schema.release == nullptr || schema.format == nullptr || std::string_view(schema.format) != "+s" ||
      !has_children(schema))
    throw Error(ErrorKind::invalid_input, "a schema of a table was expected");
  TableSchema table;
  std::set<std::string_view> names;
  table.columns.reserve(static_cast<std::size_t>(schema.n_children));
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    const ColumnType& column = table.columns.emplace_back(parse_column(*schema.children[i], "", 0));
    if (!names.insert(column.name).second)
      refuse_column(ErrorKind::invalid_input, column.name, "there are two of this name");
  }
  return table;
}

}  // namespace waywiser
