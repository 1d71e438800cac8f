/* SPDX-License-Identifier: Apache-2.0
 * Languages by the codes that other programs use for them, as the models name them: one table for the library, the
 * program and the server. */
#ifndef BASE_LANGUAGES_H
#define BASE_LANGUAGES_H

/* A code of ISO 639-1, alone or with a region ("en", "en-GB", "pt_BR", any case) -> "english"; any other text ->
 * itself. Whether a model speaks the language is another question. */
const char *language_name(const char *text);
/* "english", any case -> "en"; NULL where the table has no code. */
const char *language_code(const char *name);

#endif
