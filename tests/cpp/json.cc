// JsonVal: values, order, text.
#include "check.h"
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

std::string again(const std::string& text) { return JsonVal::parse(text).dump(); }

}  // namespace

TEST(json_numbers_keep_their_text) {
  for (const char* text : {"0", "-0", "1", "-1", "2147483647", "2147483648", "-2147483649",
                           "9223372036854775807", "9223372036854775808", "1e5", "1E+05", "1.0",
                           "0.1", "-1.5e-300", "1e999", "123456789012345678901234567890"}) {
    CHECK_EQUAL(again(text), text);
  }
}

TEST(json_num_is_cut_off_towards_zero_and_at_the_limits) {
  CHECK_EQUAL(JsonVal::parse("2.9").num, 2);
  CHECK_EQUAL(JsonVal::parse("-2.9").num, -2);
  CHECK_EQUAL(JsonVal::parse("1e400").num, std::numeric_limits<int>::max());
  CHECK_EQUAL(JsonVal::parse("-9999999999").num, std::numeric_limits<int>::min());
  CHECK_EQUAL(JsonVal::parse("-7").num, -7);
}

TEST(json_setting_num_wins_over_the_text) {
  JsonVal value = JsonVal::parse("1.5");
  value.num = 8;
  CHECK_EQUAL(value.dump(), "8");
  CHECK_EQUAL(value.toDouble(), 8.0);
}

TEST(json_integers_of_64_bits) {
  int64_t value = 0;
  for (int64_t wanted : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                         int64_t(0), int64_t(-1), int64_t(1) << 40}) {
    CHECK(JsonVal::parse(JsonVal::integer(wanted).dump()).toInteger(&value));
    CHECK_EQUAL(value, wanted);
  }
  CHECK(!JsonVal::parse("9223372036854775808").toInteger(&value));
  CHECK(!JsonVal::parse("1.5").toInteger(&value));
  CHECK(!JsonVal("1").toInteger(&value));
}

TEST(json_reals_read_back_as_the_same_double) {
  for (double wanted :
       {0.1, 1.0 / 3, 1e-310, 5e-324, 1.7976931348623157e308, -2.5, 1e21, 123456789.0}) {
    CHECK_EQUAL(JsonVal::parse(JsonVal::real(wanted).dump()).toDouble(), wanted);
  }
  CHECK_THROWS(JsonVal::real(std::numeric_limits<double>::quiet_NaN()), std::invalid_argument,
               "NaN");
  CHECK_THROWS(JsonVal::real(std::numeric_limits<double>::infinity()), std::invalid_argument,
               "infinity");
}

TEST(json_dump_is_laid_out_as_in_mxnet) {
  CHECK_EQUAL(again("{\"b\":[1,2],\"a\":{\"x\":\"y\"}}"),
              "{\"a\" : {\"x\" : \"y\"},\"b\" : [1,2]}");
  CHECK_EQUAL(again(" [ true , false , null ] "), "[true,false,null]");
  CHECK_EQUAL(again("{}") + again("[]"), "{}[]");
}

TEST(json_toString_shows_the_types) {
  CHECK_EQUAL(JsonVal::parse("[1,\"x\"]").toString(), "json(LIST:[json(INT:1),json(STR:x),])");
  CHECK_EQUAL(JsonVal::parse("{\"k\":null}").toString(), "json(MAP:{json(STR:k) : json(NULL),})");
  CHECK_EQUAL(JsonVal().toString(), "json(Error)");
}

TEST(json_escapes) {
  CHECK_EQUAL(JsonVal::parse("\"\\u00e4\\ud83d\\ude00\\n\\/\\\"\"").str,
              "\xC3\xA4\xF0\x9F\x98\x80\n/\"");
  CHECK_EQUAL(JsonVal(std::string("a\0b\x1f\"\\", 6)).dump(), "\"a\\u0000b\\u001f\\\"\\\\\"");
  CHECK_EQUAL(JsonVal::parse("\"\\u0000\"").str, std::string(1, '\0'));
  CHECK_THROWS(JsonVal("\xFF").dump(), JsonError, "not UTF-8");
  CHECK_THROWS(JsonVal("\xED\xA0\x80").dump(), JsonError, "not UTF-8");
  CHECK_THROWS(JsonVal("\xC0\x80").dump(), JsonError, "not UTF-8");
}

TEST(json_order_is_a_strict_weak_one) {
  std::vector<JsonVal> values;
  for (const char* text : {"1",
                           "1.0",
                           "1e0",
                           "2",
                           "-1",
                           "\"1\"",
                           "\"a\"",
                           "true",
                           "false",
                           "null",
                           "[]",
                           "[1]",
                           "[1,2]",
                           "[2]",
                           "{}",
                           "{\"a\":1}",
                           "{\"a\":2}",
                           "{\"b\":1}",
                           "[[1],[2]]",
                           "9007199254740993",
                           "9007199254740992"}) {
    values.push_back(JsonVal::parse(text));
  }
  values.push_back(JsonVal());
  for (const JsonVal& a : values) {
    CHECK(!(a < a));
    CHECK(a == a);
    for (const JsonVal& b : values) {
      CHECK(!(a < b && b < a));
      CHECK_EQUAL(a == b, !(a < b) && !(b < a));
      for (const JsonVal& c : values) {
        CHECK(!(a < b && b < c) || a < c);
        CHECK(!(a == b && b == c) || a == c);
      }
    }
  }
}

TEST(json_values_are_keys) {
  JsonVal map(MAP);
  map.map[JsonVal("b")] = JsonVal(1);
  map.map[JsonVal("a")] = JsonVal(2);
  map.map[JsonVal(5)] = JsonVal(3);
  CHECK_EQUAL(map.map.size(), std::size_t(3));
  CHECK_EQUAL(map.dump(), "{\"a\" : 2,\"b\" : 1,\"5\" : 3}");
  CHECK_EQUAL(JsonVal::parse(map.dump()).map.at(JsonVal("5")).num, 3);
}

TEST(json_copies_are_independent) {
  JsonVal one = JsonVal::parse("{\"k\":[1,[2,{\"x\":3}]]}");
  JsonVal two = one;
  two.map[JsonVal("k")].list[1].list[0] = JsonVal(9);
  CHECK_EQUAL(one.dump(), "{\"k\" : [1,[2,{\"x\" : 3}]]}");
  CHECK_EQUAL(two.dump(), "{\"k\" : [1,[9,{\"x\" : 3}]]}");
  two = two.map[JsonVal("k")].list[1];  // part of itself
  CHECK_EQUAL(two.dump(), "[9,{\"x\" : 3}]");
  two = std::move(one);
  CHECK_EQUAL(two.map.size(), std::size_t(1));
}

TEST(json_value_of_no_type_cannot_be_written) {
  CHECK_THROWS(JsonVal().dump(), std::invalid_argument, "ERR");
}

TEST(json_parse_at_an_index) {
  unsigned int at = 3;
  CHECK_EQUAL(JsonVal::parse("xx [1, 2] rest", &at).list.size(), std::size_t(2));
  CHECK_EQUAL(at, 9u);
  at = 99;
  CHECK_THROWS(JsonVal::parse("[]", &at), JsonError, "ends");
}

TEST(json_depth_has_a_limit) {
  JsonOptions options;
  options.max_depth = 3;
  const std::string fine = "[[[]]]";
  const std::string deep = "[[[[]]]]";
  CHECK_EQUAL(JsonReader(fine.data(), fine.size(), options).readValue().dump(), fine);
  CHECK_THROWS(JsonReader(deep.data(), deep.size(), options).readValue(), JsonError,
               "deeper than 3");
}

TEST(json_control_characters_on_request) {
  JsonOptions options;
  const std::string text = "\"a\nb\"";
  CHECK_THROWS(JsonReader(text.data(), text.size(), options).readString(), JsonError, "control");
  options.allow_control_characters = true;
  CHECK_EQUAL(JsonReader(text.data(), text.size(), options).readString().str(), "a\nb");
}

TEST(json_a_child_takes_the_place_of_its_parent) {
  JsonVal value = JsonVal::parse("[[1,{\"k\":[2]}],3]");
  value = std::move(value.list[0]);
  CHECK_EQUAL(value.dump(), "[1,{\"k\" : [2]}]");
  value = std::move(value.list[1].map.begin()->second);
  CHECK_EQUAL(value.dump(), "[2]");
  value = value.list[0];
  CHECK_EQUAL(value.dump(), "2");
}
