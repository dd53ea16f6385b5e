// A convolution layer on images that are cut in space, forwards and backwards: 16 channels, 16 filters of 3 x 3.
//   waywiser run -n 2 build/apps/convolution --size 1024x1024
#include "apps/convolution/convolution.hpp"

#include "apps/program.hpp"

namespace apps {
namespace {

void run(waywiser::Group& group, const Options& options) {
  const std::vector<std::int64_t> size = options.shape("size", 2, 1, 1 << 16);
  const std::int64_t images = options.integer("images", 1, 256);
  const int threads = static_cast<int>(options.integer("threads", 1, 1024));
  Comparison comparison(group, options, true);
  const auto layer_of = [&](waywiser::Group& ranks) {
    return Convolution(ranks, cut(ranks, size, {1, 1}, {false, false}, options), images, threads);
  };
  Convolution layer = layer_of(group);
  std::vector<double> undivided;
  if (options.choice("undivided", {"no", "yes"}) == "yes") {
    std::optional<waywiser::Group> alone = group.split(group.rank());
    Convolution whole = layer_of(*alone);
    whole.reset();
    whole.steps(comparison.steps());
    const std::vector<double> all = whole.results();
    const std::int64_t plane = size[0] * size[1], planes = 2 * images * channels;
    for (std::int64_t i = 0; i < planes; ++i) {
      const std::vector<double> own =
          part_of(std::vector<double>(all.begin() + i * plane, all.begin() + (i + 1) * plane), size, layer.box());
      undivided.insert(undivided.end(), own.begin(), own.end());
    }
    undivided.insert(undivided.end(), all.begin() + planes * plane, all.end());
  }
  comparison.run({"convolution: " + std::to_string(images) + " images of " + text_of(size) +
                      " float32, 16 channels, 16 filters of 3 x 3, boxes of up to " + text_of(layer.box().count),
                  [&](const Way& way) { layer.use(way); }, [&] { return layer.variant(); }, [&] { layer.reset(); },
                  [&](std::int64_t steps) { layer.steps(steps); },
                  [&] {
                    const bool same = undivided.empty() || undivided == layer.results();
                    const double error = layer.error();  // all ranks take part
                    return same ? error : differs;
                  },
                  0});
}

}  // namespace
}  // namespace apps

int main(int count, char** words) {
  using namespace apps;
  const Options options("convolution",
                        with_usual_options({{"size", "1024x1024", "rows x columns of the images"},
                                            {"images", "1", "how many at once"},
                                            {"parts", "auto", "boxes of ranks, as 2x1; auto: by the size"},
                                            {"undivided", "no", "yes: compare with the whole images"},
                                            fused_option()}));
  return run_program(count, words, options, run);
}
