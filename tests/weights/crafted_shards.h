/* SPDX-License-Identifier: Apache-2.0
 * Indexes of a folder of shards: one (tensors a, b, c) and two (d, e) are good; copy has b, c, d; cut lacks its end;
 * empty has no byte; hole has bytes of no tensor; text is no safetensors file; folder and pipe are no files; linked is
 * a link to two, loop a link to itself. */
#ifndef TESTS_WEIGHTS_CRAFTED_SHARDS_H
#define TESTS_WEIGHTS_CRAFTED_SHARDS_H

#include "tests/weights/crafted.h"

#define MAP(entries) "{\"weight_map\":{" entries "}}"

static const struct crafted_index crafted_indexes[] = {
    {"index: empty", "", "not usable JSON"},
    {"index: an array", "[]", "\"weight_map\" must be an object, found nothing"},
    {"index: a text", "\"one\"", "not usable JSON"},
    {"index: no map", "{\"metadata\":{}}", "\"weight_map\" must be an object, found nothing"},
    {"index: a list for a map", "{\"weight_map\":[\"one\"]}", "must be an object, found an array"},
    {"index: null for a map", "{\"weight_map\":null}", "must be an object, found null"},
    {"index: an empty map", MAP(""), "weight_map is empty"},
    {"index: two maps", "{\"weight_map\":{\"a\":\"one\"},\"weight_map\":{\"d\":\"two\"}}",
        "duplicate object key"},
    {"index: a tensor twice", MAP("\"a\":\"one\",\"a\":\"two\""), "duplicate object key"},
    {"index: more behind it", MAP("\"a\":\"one\"") "}", "not usable JSON"},
    {"index: a hundred thousand deep", "{\"weight_map\":@", "nested deeper than 64", "[", 100000},
    {"index: 300,000 values", "{\"weight_map\":{\"a\":\"one\"},\"b\":[0@]}", "more than 262144 values",
        ",0", 300000},
    {"file: a number", MAP("\"a\":1"), "tensor a: its file must be a plain name"},
    {"file: null", MAP("\"a\":null"), "tensor a: its file must be a plain name"},
    {"file: a list", MAP("\"a\":[\"one\"]"), "tensor a: its file must be a plain name"},
    {"file: no letter", MAP("\"a\":\"\""), "plain name"},
    {"file: the folder itself", MAP("\"a\":\".\""), "plain name"},
    {"file: the folder above", MAP("\"a\":\"..\""), "plain name"},
    {"file: from the root", MAP("\"a\":\"/etc/passwd\""), "plain name"},
    {"file: from the folder above", MAP("\"a\":\"../one\""), "plain name"},
    {"file: a folder's", MAP("\"a\":\"folder/one\""), "plain name"},
    {"file: a slash by an escape", MAP("\"a\":\"..\\u002fone\""), "plain name"},
    {"file: a stroke of other systems", MAP("\"a\":\"folder\\\\one\""), "plain name"},
    {"file: a nought in the name", MAP("\"a\":\"one\\u0000x\""), "not usable JSON"},
    {"file: is not there", MAP("\"a\":\"three\""), "three: cannot open"},
    {"file: in capitals", MAP("\"a\":\"ONE\""), "ONE: cannot open"},
    {"file: a name longer than names can be", MAP("\"a\":\"@\""), "too long", "o", 300},
    {"file: a name longer than paths can be", MAP("\"a\":\"@\""), "too long", "o", 5000},
    {"file: a folder", MAP("\"a\":\"folder\""), "Is a directory"},
    {"file: a pipe that nobody writes", MAP("\"a\":\"pipe\""), "a pipe or a device"},
    {"file: a link to itself", MAP("\"a\":\"loop\""), "loop: cannot open"},
    {"file: empty", MAP("\"a\":\"empty\""), "header does not fit"},
    {"file: cut", MAP("\"a\":\"one\",\"d\":\"cut\""), "/cut: "},
    {"file: with a hole", MAP("\"a\":\"hole\""), "unused bytes before"},
    {"file: a text", MAP("\"a\":\"text\""), "header does not fit"},
    {"file: the index", MAP("\"a\":\"model.safetensors.index.json\""), "header does not fit"},
    {"tensor: in no file", MAP("\"a\":\"one\",\"x\":\"two\""), "tensor x is not in two"},
    {"tensor: in the other file", MAP("\"a\":\"one\",\"d\":\"one\""), "tensor d is not in one"},
    {"tensor: both in the other's", MAP("\"a\":\"two\",\"d\":\"one\""), "is not in"},
    {"tensor: in two files", MAP("\"a\":\"one\",\"d\":\"copy\""), "tensor b is in"},
    {"tensor: the metadata's name", MAP("\"a\":\"one\",\"__metadata__\":\"one\""),
        "tensor __metadata__ is not in one"},
    {"odd: only a part of the tensors is listed", MAP("\"a\":\"one\",\"d\":\"two\""), NULL},
    {"odd: one file, and sizes that nobody reads",
        "{\"metadata\":{\"total_size\":1e99},"
        "\"weight_map\":{\"c\":\"one\"}}",
        NULL},
    {"odd: a link to a shard", MAP("\"a\":\"one\",\"e\":\"linked\""), NULL},
};

#endif
