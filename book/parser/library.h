/* SPDX-License-Identifier: Apache-2.0
 * Libraries that only books need: loaded when one is read, not when the program starts. */
#ifndef BOOK_LIBRARY_H
#define BOOK_LIBRARY_H

#include <archive.h>
#include <archive_entry.h>
#include <libxml/HTMLparser.h>
#include <libxml/parser.h>

#include "base/library.h"

/* The calls of libxml2 and libarchive that are used, under their own names. */
struct library {
    __typeof__(&xmlReadMemory) xmlReadMemory;
    __typeof__(&htmlReadMemory) htmlReadMemory;
    __typeof__(&xmlDocGetRootElement) xmlDocGetRootElement;
    __typeof__(&xmlFreeDoc) xmlFreeDoc;
    __typeof__(&xmlGetLastError) xmlGetLastError;
    __typeof__(&xmlResetLastError) xmlResetLastError;
    __typeof__(&archive_read_new) archive_read_new;
    __typeof__(&archive_read_support_format_zip_seekable) archive_read_support_format_zip_seekable;
    __typeof__(&archive_read_open_memory) archive_read_open_memory;
    __typeof__(&archive_read_next_header) archive_read_next_header;
    __typeof__(&archive_read_data) archive_read_data;
    __typeof__(&archive_error_string) archive_error_string;
    __typeof__(&archive_read_free) archive_read_free;
    __typeof__(&archive_entry_pathname) archive_entry_pathname;
    __typeof__(&archive_entry_pathname_utf8) archive_entry_pathname_utf8;
    __typeof__(&archive_entry_is_encrypted) archive_entry_is_encrypted;
};

/* NULL, or the name of the Debian package that is missing. */
const char *library_books(struct library *l);

#endif
