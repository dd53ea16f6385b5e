// The Wilson operator of lattice QCD on a lattice of four dimensions:
//   waywiser run -n 2 build/apps/wilson_dslash --size 16x16x16x32 --type float32
#include "apps/wilson_dslash/wilson_dslash.hpp"

#include <fstream>
#include <limits>

#include "apps/program.hpp"

namespace apps {
namespace {

void write_numbers(std::ofstream& file, const std::vector<double>& values) {
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(double)));
}

// For another program that checks: FOLDER/RANK.bin has first and count of the box as 8 int64, then as float64 the links
// and the spinors before and after one application.
template <typename S>
void write_one_application(WilsonDslash<S>& operator_, const std::string& folder, int rank) {
  const std::string name = folder + "/" + std::to_string(rank) + ".bin";
  std::ofstream file(name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(operator_.box().first.data()), 4 * sizeof(std::int64_t));
  file.write(reinterpret_cast<const char*>(operator_.box().count.data()), 4 * sizeof(std::int64_t));
  operator_.set_links(Links::noise);
  operator_.reset();
  write_numbers(file, operator_.links());
  write_numbers(file, operator_.spinors());
  operator_.steps(1);
  write_numbers(file, operator_.spinors());
  if (!file.flush()) throw waywiser::Error(waywiser::ErrorKind::io, name + " cannot be written");
}

// Of the wave at the beginning and of the exact result, 24 epsilon each: angles up to 4 pi, rounded in each product and
// sum, differ by up to 13 epsilon, and the values are up to 1.8 times as large.
constexpr double error_of_waves = 48 * std::numeric_limits<double>::epsilon();

template <typename S>
void run(waywiser::Group& group, const Options& options, double epsilon) {
  const std::vector<std::int64_t> size = options.shape("size", 4, 1, 1 << 15);
  const int threads = static_cast<int>(options.integer("threads", 1, 1024));
  Comparison comparison(group, options, true);
  const auto operator_of = [&](waywiser::Group& ranks) {
    return WilsonDslash<S>(ranks, cut(ranks, size, {1, 1, 1, 1}, {true, true, true, true}, options), threads);
  };
  WilsonDslash<S> dslash = operator_of(group);
  const double hermiticity = dslash.hermiticity_error();
  if (!(hermiticity <= 4 * epsilon))
    throw waywiser::Error(waywiser::ErrorKind::corrupt,
                          "the operator is not gamma-5 hermitian: the two products differ by " +
                              std::to_string(hermiticity / epsilon) + " epsilon");
  if (!options.text("write").empty()) write_one_application(dslash, options.text("write"), group.rank());
  dslash.set_links(Links::plane_wave);
  std::vector<double> undivided;
  if (options.choice("undivided", {"no", "yes"}) == "yes") {
    std::optional<waywiser::Group> alone = group.split(group.rank());
    WilsonDslash<S> whole = operator_of(*alone);
    whole.set_links(Links::plane_wave);
    whole.reset();
    whole.steps(comparison.steps());
    undivided = part_of(whole.spinors(), size, dslash.box(), spinor_reals);
  }
  comparison.run({"wilson_dslash: " + text_of(size) + " sites (t, z, y, x), " + options.text("type") +
                      ", boxes of up to " + text_of(dslash.box().count),
                  [&](const Way& way) { dslash.use(way); }, [&] { return dslash.variant(); }, [&] { dslash.reset(); },
                  [&](std::int64_t steps) { dslash.steps(steps); },
                  [&] { return undivided.empty() || undivided == dslash.spinors() ? dslash.error() : differs; },
                  epsilon * (8 + static_cast<double>(comparison.steps()) / 10) + error_of_waves});
  if (group.rank() == 0 && options.text("format") == "table")
    std::printf("gamma-5 hermitian: the two products differ by %.2g of their terms\n", hermiticity);
}

}  // namespace
}  // namespace apps

int main(int count, char** words) {
  using namespace apps;
  const Options options("wilson_dslash",
                        with_usual_options({{"size", "16x16x16x32", "sites in t, z, y, x"},
                                            {"type", "float64", "of what is stored: float64, float32, float16"},
                                            {"parts", "auto", "boxes of ranks, as 2x1x1x1; auto: by the size"},
                                            {"undivided", "no", "yes: compare with the whole lattice at once"},
                                            {"write", "", "a folder for what one application reads and writes"},
                                            fused_option()}));
  return run_program(count, words, options, [](waywiser::Group& group, const Options& given) {
    const std::string& type = given.choice("type", {"float64", "float32", "float16"});
    if (type == "float64") run<double>(group, given, 0x1p-52);
    if (type == "float32") run<float>(group, given, 0x1p-23);
    if (type == "float16") run<waywiser::Float16>(group, given, 0x1p-10);
  });
}
