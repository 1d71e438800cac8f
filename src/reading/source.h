/* SPDX-License-Identifier: Apache-2.0
 * From a text to the pieces that are spoken: what its markup says, then the cut. Owns both, and the way back from a
 * spoken byte to the source. */
#ifndef READING_SOURCE_H
#define READING_SOURCE_H

#include "reading/cut.h"
#include "script/script.h"

/* A piece, and how it is spoken. Valid until the next call. */
struct source_piece {
    struct cut_piece cut;             /* at and bytes are of the source */
    const struct script_style *style; /* NULL: as the reading */
    /* Exactly so much quiet before it and behind it; below 0: as the cut asks. */
    double lead_s, pause_s;
    /* [cut.text_bytes + 1]: where in the source each byte of its text, and the end of it, comes from. NULL: the text is
     * the source from cut.at on, white space aside. */
    const size_t *origins;
    /* [cut.text_bytes]: where in the source that ends which each byte comes from. NULL as well. */
    const size_t *ends;
};

/* Zero it, set cutter.most. */
struct source {
    struct cutter cutter;
    struct script *script; /* NULL: plain text */
    struct script_span span, next;
    bool has_span, has_next, finished;
    double lead_s;       /* of the piece to come; 0: none */
    struct chars unread; /* bytes of a character that the script has not seen */
    size_t n_checked;    /* bytes of the text that are known to be UTF-8 */
    size_t n_given;      /* bytes that came */
    size_t n_cut;        /* pieces that went out */
    size_t *origins;     /* and the ends */
    size_t origins_room;
    utter_written_fn *written; /* of plain text; NULL: nobody asks */
    void *written_user;
};

/* With options that are wanted (script_is_wanted), the text is a script. */
utter_status source_open(
    struct source *source, const struct script_options *options, utter_error *error);
/* What is not UTF-8 is refused with its place in the whole text, before any of it is spoken. */
utter_status source_text(struct source *source, const char *text, size_t bytes, utter_error *error);
utter_status source_finish(struct source *source, utter_error *error);
/* UTTER_AGAIN: it depends on text to come; UTTER_END: there is none. */
utter_status source_next(struct source *source, struct source_piece *piece, utter_error *error);
bool source_is_done(const struct source *source);
/* As cutter_certain. */
size_t source_certain(const struct source *source);
void source_fini(struct source *source);

#endif
