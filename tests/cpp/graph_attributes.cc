// Graph::attrs: the interface of a std::map, before and after the map is made. Node::extra.
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "header.h"

using namespace mxnet::ext;

namespace {

typedef std::map<std::string, JsonVal> ValueMap;

const char kNoNodes[] = "{\"nodes\": [], \"arg_nodes\": [], \"node_row_ptr\": [0], \"heads\": []";

/// The attributes of a graph that has just been read.
struct ReadGraph {
  explicit ReadGraph(
      const std::string& members =
          ", \"b\": {\"z\": [1.50, null], \"a\": \"\\u00e4\\n\"}, \"a\": \"text\", \"c\": 3}")
      : graph(Graph::fromString(kNoNodes + members)) {}
  std::unique_ptr<Graph> graph;
  GraphAttributes& attrs = graph->attrs;
  const GraphAttributes& fixed = graph->attrs;
};

ValueMap expectedValues() {
  return ValueMap{{"a", JsonVal("text")},
                  {"b", JsonVal::parse("{\"a\": \"\\u00e4\\n\", \"z\": [1.50, null]}")},
                  {"c", JsonVal(3)}};
}

std::string membersText(const GraphAttributes& attributes) {
  JsonMembers room;
  std::string all;
  for (const auto& member : host::GraphAttributeTexts::list(attributes, &room)) {
    all += member.first + "=" + member.second + ";";
  }
  return all;
}

std::size_t valuesIn(ValueMap map) { return map.size(); }
std::size_t valuesInReference(const ValueMap& map) { return map.size(); }
void setValueIn(ValueMap& map) { map["new"] = JsonVal(1); }

const char kValueTexts[] = "a=\"text\";b={\"a\": \"\xc3\xa4\\n\", \"z\": [1.50, null]};c=3;";

}  // namespace

TEST(graph_attributes_as_text) {
  ReadGraph read;
  CHECK_EQUAL(read.fixed.size(), 3u);
  CHECK(!read.fixed.empty());
  CHECK_EQUAL(read.fixed.count("a"), 1u);
  CHECK_EQUAL(read.fixed.count("aa"), 0u);
  CHECK_EQUAL(membersText(read.fixed), kValueTexts);
  std::string text = "before";
  CHECK(host::GraphAttributeTexts::getString(read.fixed, "a", &text));
  CHECK_EQUAL(text, "text");
  CHECK(!host::GraphAttributeTexts::getString(read.fixed, "b", &text) &&
        !host::GraphAttributeTexts::getString(read.fixed, "none", &text));
  CHECK_EQUAL(text, "text");
}

TEST(graph_attributes_as_a_map) {
  ReadGraph read;
  CHECK(read.fixed == expectedValues());
  CHECK(expectedValues() == read.fixed);
  CHECK(!(read.fixed != expectedValues()) && !(expectedValues() != read.fixed));
  CHECK_EQUAL(read.fixed.at("c").num, 3);
  CHECK_THROWS(read.fixed.at("none"), std::out_of_range, "");
  CHECK_THROWS(read.attrs.at("none"), std::out_of_range, "");
  CHECK(read.fixed.find("none") == read.fixed.end());
  CHECK_EQUAL(read.attrs.find("a")->second.str, "text");
  CHECK_EQUAL(valuesIn(read.attrs), 3u);
  CHECK_EQUAL(valuesInReference(read.fixed), 3u);
  std::string keys;
  for (const auto& item : read.fixed) keys += item.first;
  for (GraphAttributes::iterator it = read.attrs.begin(); it != read.attrs.end(); ++it) {
    keys += it->first;
  }
  CHECK_EQUAL(keys, "abcabc");
  CHECK_EQUAL(read.fixed.lower_bound("b")->first, "b");
  CHECK_EQUAL(read.attrs.upper_bound("b")->first, "c");
  CHECK(read.fixed.equal_range("b").first != read.fixed.equal_range("b").second);
  CHECK_EQUAL(membersText(read.fixed), kValueTexts);
}

TEST(graph_attributes_change) {
  ReadGraph read;
  setValueIn(read.attrs);
  read.attrs["b"].map[JsonVal("z")].list.clear();
  CHECK_EQUAL(read.attrs.erase("c"), 1u);
  read.attrs.erase(read.attrs.find("a"));
  CHECK(read.attrs.insert(std::make_pair("d", JsonVal(true ? "x" : ""))).second);
  CHECK(!read.attrs.insert({"d", JsonVal(2)}).second);
  CHECK(read.attrs.emplace("e", JsonVal::null()).second);
  const ValueMap more{{"f", JsonVal(LIST)}};
  read.attrs.insert(more.begin(), more.end());
  CHECK_EQUAL(read.fixed.size(), 5u);
  CHECK_EQUAL(membersText(read.fixed),
              "b={\"a\": \"\xc3\xa4\\n\", \"z\": []};d=\"x\";e=null;f=[];new=1;");
  std::string text;
  CHECK(host::GraphAttributeTexts::getString(read.fixed, "d", &text) && text == "x");
  CHECK(!host::GraphAttributeTexts::getString(read.fixed, "e", &text) &&
        !host::GraphAttributeTexts::getString(read.fixed, "none", &text));
  read.attrs["wrong"];
  CHECK_THROWS(read.graph->toString(), std::invalid_argument, "ERR");
  read.attrs.clear();
  CHECK(read.fixed.empty() && read.graph->toString() == std::string(kNoNodes) + "}");
}

TEST(graph_attributes_are_copied) {
  for (const bool made : {false, true}) {
    ReadGraph read, other(", \"o\": 1}");
    if (made) read.attrs["a"];
    GraphAttributes copy = read.attrs;
    CHECK(copy == read.attrs && !(copy != read.attrs));
    copy["a"] = JsonVal(1);
    CHECK(copy != read.attrs);
    CHECK(read.fixed == expectedValues());
    copy = other.attrs;
    CHECK(copy == other.attrs);
    copy.swap(read.attrs);
    CHECK(copy == expectedValues() && read.attrs == other.attrs);
    const GraphAttributes moved = std::move(copy);
    CHECK(moved == expectedValues());
    read.attrs = moved;
    read.attrs = *&read.attrs;
    CHECK(read.attrs == moved);
    ValueMap map = moved;
    read.attrs = map;
    read.attrs.swap(map);
    CHECK(read.attrs == map);
    read.attrs = {{"k", JsonVal(1)}};
    CHECK_EQUAL(membersText(read.attrs), "k=1;");
  }
}

TEST(graph_attributes_are_read_by_several_threads) {
  const ReadGraph read;
  std::vector<std::thread> threads;
  std::vector<const JsonVal*> found(8);
  for (const JsonVal*& each : found) {
    threads.emplace_back([&read, &each]() { each = &read.fixed.at("b"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const JsonVal* each : found) CHECK(each == found[0]);
}

TEST(graph_attributes_as_they_are_written) {
  const std::string members =
      ", \"\": {\"b\": [[], {}], \"a\\u0001\": {\"\": -0, \"k\": 1e3}}, \"n\": [1, 2, 3, 4, 5, 6, "
      "7, "
      "8, 9, 10, 11]}";
  ReadGraph read(members), made(members);
  const std::string line =
      ", \"\": {\"a\\u0001\": {\"\": -0, \"k\": 1e3}, \"b\": [[], {}]}, \"n\": [1, 2, 3, 4, 5, 6, "
      "7, "
      "8, 9, 10, 11]}";
  made.attrs[""];
  CHECK_EQUAL(read.graph->toString(), kNoNodes + line);
  CHECK_EQUAL(made.graph->toString(), kNoNodes + line);
  std::string pretty, again;
  read.graph->writePretty(&pretty);
  made.graph->writePretty(&again);
  CHECK_EQUAL(pretty, again);
  CHECK(pretty.find("  \"\": {\n    \"a\x01\": {\n      \"\": -0, \n      \"k\": 1e3\n    }, \n    "
                    "\"b\": [\n      [], \n      {}\n    ]\n  }, \n  \"n\": [\n    1, \n    2") !=
        std::string::npos);
}

TEST(graph_attributes_occur_once) {
  for (const char* members : {", \"a\": 1, \"a\": 2}", ", \"b\": 1, \"a\": 1, \"b\": 2}",
                              ", \"\": [], \"\": {}}", ", \"c\": [{\"a\": 1, \"\\u0061\": 1}]}"}) {
    CHECK_THROWS(ReadGraph{members}, JsonError, "occurs twice in one object");
  }
}
