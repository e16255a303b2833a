// Node::attrs: the interface of a std::unordered_map, before and after the map is made.
#include <map>
#include <thread>
#include <vector>

#include "check.h"
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Map;

const char kText[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": [], "
    "\"attrs\": {\"stride\": \"(1, 1)\", \"kernel\": \"(3, 3)\", \"\": \"\", \"bias\": \"\"}}], "
    "\"arg_nodes\": [0], \"heads\": [[0, 0, 0]]}";

/// The attributes of a graph that has just been read.
struct Read {
  std::unique_ptr<Graph> graph{Graph::fromString(kText)};
  NodeAttributes& attrs = graph->nodes[0]->attrs;
  const NodeAttributes& fixed = attrs;
  const Map expected{{"kernel", "(3, 3)"}, {"stride", "(1, 1)"}, {"", ""}, {"bias", ""}};
};

std::size_t sizeOf(Map map) { return map.size(); }
std::size_t sizeOfReference(const Map& map) { return map.size(); }
void setIn(Map& map) { map["new"] = "1"; }

template <typename Attributes>
Map copyOf(Attributes& attributes) {
  Map copy;
  for (auto& item : attributes) copy[item.first] = item.second;
  return copy;
}

}  // namespace

TEST(attributes_are_read_by_key) {
  Read read;
  CHECK_EQUAL(read.fixed.size(), 4u);
  CHECK(!read.fixed.empty());
  CHECK_EQUAL(read.fixed.count("kernel"), 1u);
  CHECK_EQUAL(read.fixed.count(""), 1u);
  CHECK_EQUAL(read.fixed.count("kern"), 0u);
  CHECK_EQUAL(read.fixed.at("kernel"), "(3, 3)");
  CHECK_EQUAL(read.fixed.at("bias"), "");
  CHECK_THROWS(read.fixed.at("none"), std::out_of_range, "");
  CHECK(read.fixed.find("none") == read.fixed.end());
  CHECK_EQUAL(read.attrs.find("stride")->second, "(1, 1)");
  CHECK_EQUAL(textAttr(read.graph->nodes[0], "bias", "preset"), "");
}

TEST(attributes_are_walked) {
  Read read, untouched;
  CHECK(copyOf(read.attrs) == read.expected);
  CHECK(copyOf(untouched.fixed) == read.expected);
  const std::map<std::string, std::string> sorted(read.fixed.begin(), read.fixed.end());
  CHECK_EQUAL(sorted.size(), 4u);
}

TEST(attributes_are_compared_copied_and_moved) {
  Read one, two;
  CHECK(one.attrs == two.attrs && one.attrs == one.expected && one.expected == two.fixed);
  CHECK_EQUAL(two.attrs["bias"], "");  // makes the map of one of them
  CHECK(one.attrs == two.attrs && !(one.attrs != two.attrs));
  two.attrs["bias"] = "x";
  CHECK(one.attrs != two.attrs && two.attrs != one.expected);
  NodeAttributes copy = one.attrs;
  const NodeAttributes touched(two.attrs);
  CHECK(copy == one.attrs && touched == two.attrs);
  two.attrs = one.attrs;
  CHECK(two.attrs == one.attrs);
  NodeAttributes& self = two.attrs;
  self = two.attrs;
  CHECK(two.attrs == one.attrs);
  const NodeAttributes moved(std::move(copy));
  CHECK(moved == one.attrs);
  copy = NodeAttributes{{"a", "b"}};
  swap(copy, two.attrs);
  CHECK(copy == one.attrs && two.attrs == Map({{"a", "b"}}));
  CHECK(NodeAttributes() == Map() && NodeAttributes().empty());
}

TEST(attributes_convert_to_and_from_maps) {
  Read read;
  Map map = read.attrs;
  const Map direct(read.fixed);
  CHECK(map == read.expected && direct == read.expected);
  map = Read().fixed;
  map = Read().attrs;
  CHECK(map == read.expected);
  CHECK_EQUAL(sizeOf(read.attrs) + sizeOfReference(read.attrs) + sizeOfReference(read.fixed), 12u);
  setIn(read.attrs);
  CHECK_EQUAL(read.fixed.at("new"), "1");
  read.attrs = map;
  CHECK(read.attrs == map);
  read.attrs = std::move(map);
  CHECK(read.attrs == read.expected);
  read.attrs = {{"a", "1"}, {"b", "2"}};
  CHECK_EQUAL(read.attrs.size(), 2u);
  NodeAttributes::const_reference first = *read.fixed.begin();
  NodeAttributes::reference same = *read.attrs.begin();
  const NodeAttributes::difference_type count = std::distance(read.attrs.begin(), read.attrs.end());
  CHECK(first == same && count == 2 && read.fixed.max_size() == map.max_size());
  read.attrs = {};
  CHECK(read.attrs.empty() && read.fixed.begin() == read.fixed.end());
  map = read.expected;
  read.attrs.swap(map);
  CHECK(read.attrs == read.expected && map.empty());
}

TEST(attributes_are_changed) {
  Read read;
  read.attrs["kernel"] = "(5, 5)";
  read.attrs.find("stride")->second = "(2, 2)";
  CHECK(read.attrs.insert({"pad", "1"}).second && !read.attrs.insert({"pad", "2"}).second);
  CHECK(read.attrs.insert(std::make_pair("a", "b")).second);
  CHECK(read.attrs.emplace("c", "d").second);
  read.attrs.insert({{"e", "f"}, {"c", "x"}});
  read.attrs.insert(read.expected.begin(), read.expected.end());
  CHECK_EQUAL(read.attrs.erase("bias") + read.attrs.erase("none"), 1u);
  read.attrs.erase(read.attrs.find(""));
  const Map expected{{"kernel", "(5, 5)"}, {"stride", "(2, 2)"}, {"pad", "1"},
                     {"a", "b"},           {"c", "d"},           {"e", "f"}};
  CHECK(read.attrs == expected);
  CHECK(read.graph->toString().find("\"attrs\": {\"a\": \"b\", \"c\": \"d\", \"e\": \"f\", "
                                    "\"kernel\": \"(5, 5)\"") != std::string::npos);
  read.attrs.clear();
  CHECK(read.attrs.empty() && read.attrs.begin() == read.attrs.end());
}

TEST(attributes_are_written_in_order_whether_touched_or_not) {
  Read touched, untouched;
  touched.attrs.begin();
  CHECK_EQUAL(touched.graph->toString(), untouched.graph->toString());
}

TEST(attributes_are_read_by_several_threads) {
  const Read read;
  std::vector<std::size_t> counts(4);
  std::vector<std::thread> threads;
  for (std::size_t& count : counts) {
    threads.emplace_back([&read, &count] {
      for (int round = 0; round < 100; ++round) {
        count += copyOf(read.fixed).size() + read.fixed.count("kernel");
        count += read.attrs.find("stride") != read.attrs.end() ? 1u : 0u;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counts == std::vector<std::size_t>(4, 600));
}
