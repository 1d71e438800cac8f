/* SPDX-License-Identifier: Apache-2.0
 * The calls by name. */
#include "book/parser/library.h"

#define CALL(name)                                                                                     \
    {                                                                                                  \
#name, &l->name                                                                                \
    }

const char *library_books(struct library *l)
{
    const struct library_call xml[] = {CALL(xmlReadMemory), CALL(htmlReadMemory),
        CALL(xmlDocGetRootElement), CALL(xmlFreeDoc), CALL(xmlGetLastError), CALL(xmlResetLastError)};
    const struct library_call zip[] = {CALL(archive_read_new),
        CALL(archive_read_support_format_zip_seekable), CALL(archive_read_open_memory),
        CALL(archive_read_next_header), CALL(archive_read_data), CALL(archive_error_string),
        CALL(archive_read_free), CALL(archive_entry_pathname), CALL(archive_entry_pathname_utf8),
        CALL(archive_entry_is_encrypted)};
    return !library_load("libxml2.so.2", xml, sizeof xml / sizeof *xml)       ? "libxml2"
           : !library_load("libarchive.so.13", zip, sizeof zip / sizeof *zip) ? "libarchive13"
                                                                              : NULL;
}
