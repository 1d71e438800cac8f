"""make_books.py FOLDER: books of every kind, whole, broken and hostile, made of nothing but this file."""

import os
import struct
import sys
import zipfile
import zlib

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="%s" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def page(body, title="", head=""):
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops"><head><title>{title}</title>{head}</head>'
        f'<body>{body}</body></html>'
    )


def picture():
    """A PNG of 8 x 8 grey pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80" * 8 for _ in range(8))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def package(items, spine, about="", toc=""):
    """items: id, href, media type, properties."""
    return (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        + about
        + "</metadata><manifest>"
        + "".join(f'<item id="{i}" href="{h}" media-type="{t}" properties="{p}"/>' for i, h, t, p in items)
        + f"</manifest><spine{toc}>"
        + "".join(f'<itemref idref="{i}"{more}/>' for i, more in spine)
        + "</spine></package>"
    )


def epub(name, files, container=CONTAINER % "OEBPS/book.opf"):
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        if container:
            archive.writestr("META-INF/container.xml", container)
        for path, data in files:
            if isinstance(data, int):  # so many MB of nothing
                with archive.open(path, "w", force_zip64=True) as file:
                    for _ in range(data):
                        file.write(b" " * (1 << 20))
            else:
                archive.writestr(path, data)


def write(name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


XHTML, NCX = "application/xhtml+xml", "application/x-dtbncx+xml"
ABOUT = ("<dc:title>The  Nested\nBook</dc:title><dc:creator>Ann Able</dc:creator><dc:creator>Bob</dc:crea"
    "tor><dc:language>en-GB</dc:language>")
NAV = page(
    '<nav epub:type="landmarks"><ol><li><a href="text/one.xhtml">wrong list</a></li></ol></nav>'
    '<nav epub:type="toc"><h1>Contents</h1><ol><li><a href="text/one.xhtml">Part One</a><ol>'
    '<li><a href="text/one.xhtml#c1">Chapter 1</a></li><li><a href="text/one.xhtml#c2">Chapter <i>2</i></a>'
    '<ol><li><a href="text/one.xhtml#s">Section</a></li></ol></li></ol></li>'
    '<li><span>Part Two</span><ol><li><a href="text/../text/t%77o.xhtml#gone">Chapter 3</a></li></ol></li></ol></nav>'
)
ONE = page(
    '<h1>Part One</h1><h2 id="c1">Chapter 1</h2><p>It was a&nbsp;dark night.<a epub:type="noteref" href="#n">1</a>'
    '<a role="doc-noteref" href="#m">2</a></p><div role="doc-footnote" id="m">Another note.</div>'
    '<p>Rain&#8212;and <b>more</b>\n   rain.<br/>Next line.</p><aside epub:type="footnote" id="n">A note.</aside>'
    '<script>alert("never")</script><h2><a id="c2"/>Chapter 2</h2><p>Soft\u00adhyphen.</p><div id="s">In'
    ' a section.</div>'
)
TWO = page('<h2>Chapter 3</h2><table><tr><td>Cell</td><td>by cell</td></tr></table><p hidden="hidden">Hidden.</p>')
ITEMS = [
    ("nav", "nav.xhtml", XHTML, "nav"),
    ("a", "text/one.xhtml", XHTML, ""),
    ("b", "text/two.xhtml", XHTML, ""),
    ("c", "text/three.xhtml", XHTML, ""),
    ("x", "text/extra.xhtml", XHTML, ""),
    ("pic", "cover.png", "image/png", "cover-image"),
]
SPINE = [("nav", ""), ("a", ""), ("b", ""), ("c", ""), ("x", ' linear="no"')]
FILES = [
    ("OEBPS/nav.xhtml", NAV),
    ("OEBPS/text/one.xhtml", ONE),
    ("OEBPS/text/two.xhtml", TWO),
    ("OEBPS/text/three.xhtml", page("<p>Goes on with the last.</p>")),
    ("OEBPS/text/extra.xhtml", page("<p>Aside.</p>")),
    ("OEBPS/cover.png", picture()),
]
epub("nested.epub", [("OEBPS/book.opf", package(ITEMS, SPINE, ABOUT))] + FILES)

POINT = '<navPoint id="{0}"><navLabel><text>{1}</text></navLabel><content src="{2}"/>{3}</navPoint>'
EPUB2 = (
    '<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>'
    + POINT.format(
        1,
        "Part One",
        "text/one.xhtml",
        POINT.format(2, "Chapter 1", "text/one.xhtml#c1", "") + POINT.format(3, "Chapter 2", "text/one.xhtml#c2", ""),
    )
    + POINT.format(4, "Chapter 3", "text/two.xhtml", "")
    + "</navMap></ncx>"
)
epub(
    "ncx.epub",
    [
        (
            "OEBPS/book.opf",
            package(
                ITEMS[1:4] + [("toc", "toc.ncx", NCX, ""), ("pic", "cover.png", "image/png", "")],
                SPINE[1:4],
                ABOUT + '<meta name="cover" content="pic"/>',
                ' toc="toc"',
            ),
        ),
        ("OEBPS/toc.ncx", EPUB2),
    ]
    + FILES,
)
epub("no-toc.epub", [("OEBPS/book.opf", package(ITEMS[1:3], SPINE[1:3], ABOUT))] + FILES)
epub("no-container.epub", [("OEBPS/book.opf", package(ITEMS, SPINE, ABOUT))] + FILES, None)

# Names of pages beyond ASCII, as they are and coded.
epub(
    "letters.epub",
    [
        (
            "OEBPS/book.opf",
            package(
                [("a", "t\u00e9xt/%E7%AC%AC.xhtml", XHTML, ""), ("b", "zw\u00f6lf.xhtml", XHTML, "")],
                [("a", ""), ("b", "")],
                ABOUT,
            ),
        ),
        ("OEBPS/t\u00e9xt/\u7b2c.xhtml", page("<p>One.</p>")),
        ("OEBPS/zw\u00f6lf.xhtml", page("<p>Two.</p>")),
    ],
)
# Broken pages, as shops sell them; a page in an encoding of its own.
BROKEN = "<html><body><p>Not closed<p>Neither <b>this <i>nor</b> that</i> &unknown; &copy; &<div>A div</p></span>End"
epub(
    "broken.epub",
    [
        ("OEBPS/book.opf", package(ITEMS[1:4], SPINE[1:4], ABOUT)),
        ("OEBPS/text/one.xhtml", BROKEN),
        (
            "OEBPS/text/two.xhtml",
            '<?xml version="1.0" encoding="windows-1252"?><html><body><p>caf'.encode()
            + b"\xe9 \x93quoted\x94</p></body></html>",
        ),
        ("OEBPS/text/three.xhtml", ("\ufeff" + page("<p>wide</p>")).encode("utf-16-le")),
    ],
)
# Entities that point outside, and those that grow.
OUTSIDE = (
    '<!DOCTYPE html [<!ENTITY file SYSTEM "file:///etc/passwd"><!ENTITY net SYSTEM "http://127.0.0.1:9/x">'
    '<!ENTITY % more SYSTEM "file:///etc/hosts">%more;]>'
)
LAUGHS = (
    "<!DOCTYPE package [<!ENTITY a0 'ha'>"
    + "".join(f"<!ENTITY a{i} '{'&a%d;' % (i - 1) * 10}'>" for i in range(1, 12))
    + "]>"
)
epub(
    "laughs.epub",
    [
        (
            "OEBPS/book.opf",
            LAUGHS + package(ITEMS[1:2], SPINE[1:2], "<dc:title>A &a11; B</dc:title>").partition("?>")[2],
        )
    ]
    + FILES,
)
epub(
    "outside.epub",
    [
        ("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)),
        ("OEBPS/text/one.xhtml", OUTSIDE + "<html><body><p>[&file;] [&net;] done</p></body></html>"),
    ],
)
# Names that climb, or are nothing but names.
epub(
    "paths.epub",
    [
        ("../../../tmp/utter-evil.xhtml", page("<p>evil</p>")),
        ("/etc/utter-evil.xhtml", page("<p>evil</p>")),
        (
            "OEBPS/book.opf",
            package(
                [
                    ("a", "../../../../../../etc/passwd", XHTML, ""),
                    ("b", "file:///etc/passwd", XHTML, ""),
                    ("c", "text\\one.xhtml", XHTML, ""),
                    ("d", "%2e%2e/%2e%2e/etc/hosts", XHTML, ""),
                ],
                [(i, "") for i in "abcd"],
                ABOUT,
            ),
        ),
        ("OEBPS/text/one.xhtml", page("<p>Only this.</p>")),
    ],
)
N = int(os.environ.get("CHAPTERS", 5000))
epub(
    "many.epub",
    [
        (
            "OEBPS/book.opf",
            package(
                [("nav", "nav.xhtml", XHTML, "nav")] + [(f"p{i}", f"{i}.xhtml", XHTML, "") for i in range(N)],
                [(f"p{i}", "") for i in range(N)],
                ABOUT,
            ),
        ),
        (
            "OEBPS/nav.xhtml",
            page(
                '<nav epub:type="toc"><ol>'
                + "".join(f'<li><a href="{i}.xhtml">Chapter {i + 1}</a></li>' for i in range(N))
                + "</ol></nav>"
            ),
        ),
    ]
    + [(f"OEBPS/{i}.xhtml", page(f"<h2>Chapter {i + 1}</h2><p>Words of it.</p>")) for i in range(N)],
)
epub(
    "many-in-one.epub",
    [
        ("OEBPS/book.opf", package(ITEMS[:2], SPINE[1:2], ABOUT)),
        (
            "OEBPS/nav.xhtml",
            page(
                '<nav epub:type="toc"><ol>'
                + "".join(f'<li><a href="text/one.xhtml#p{i}">Chapter {i + 1}</a></li>' for i in range(N))
                + "</ol></nav>"
            ),
        ),
        ("OEBPS/text/one.xhtml", page("".join(f'<p id="p{i}">Chapter {i + 1}.</p>' for i in range(N)))),
    ],
)
# Bombs: a page of zeros, many pages, depth, one endless word.
MB = int(os.environ.get("BOMB_MB", 300))
epub(
    "bomb.epub",
    [("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)), ("OEBPS/text/one.xhtml", MB)],
)
PART = b"<p>" * (1 << 22)
epub(
    "bombs.epub",
    [("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT))]
    + [(f"OEBPS/{i}.xhtml", PART) for i in range(MB // 12 + 1)],
)
epub(
    "deep.epub",
    [
        ("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)),
        ("OEBPS/text/one.xhtml", page("<div>" * 100000 + "deep" + "</div>" * 100000)),
    ],
)
epub(
    "tags.epub",
    [("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)), ("OEBPS/text/one.xhtml", b"<i>" * (10 << 20))],
)
epub(
    "locked.epub",
    [
        ("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)),
        (
            "META-INF/encryption.xml",
            '<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#ae'
            's128-cbc"/></EncryptedData></encryption>',
        ),
    ]
    + FILES,
)
epub(
    "fonts.epub",
    [
        ("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)),
        (
            "META-INF/encryption.xml",
            '<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"'
            '/></EncryptedData></encryption>',
        ),
    ]
    + FILES,
)
epub(
    "empty.epub",
    [("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT)), ("OEBPS/text/one.xhtml", page("<img src='x'/>"))],
)
epub("lacks-pages.epub", [("OEBPS/book.opf", package(ITEMS[1:2], SPINE[1:2], ABOUT))])
epub("no-package.epub", [("readme.txt", "hello")])
with open(os.path.join(folder, "nested.epub"), "rb") as file:
    whole = file.read()
write("torn.epub", whole[: len(whole) * 2 // 3])
write("damaged.epub", whole[:1500] + b"\xaa" * 40 + whole[1540:])

write(
    "plain.txt",
    "A short book\nby nobody at all\n\nChapter 1\n\nIt was a dark night.  The rain\nfell without a\nbrea"
    "k.\n\n\n* * *\n\nMore of it.\n\n"
    "CHAPTER II. The day\n\nIt was a bright day. Chapter 3\nis not here.\n",
)
write("zeros.txt", "Words of it.\n" * 400 + "\nBefore a zero\0and behind.\n")
write("wide.txt", "\ufeffWide text.\n".encode("utf-16-le"))
write("latin.txt", "caf\u00e9\n".encode("latin-1"))
write("chapters.txt", "第一章 开始\n\n很久以前。\n\n第二章\n\n后来。\n")
write(
    "book.md",
    '---\ntitle: "The Marked Book"\nauthor: Ann Able\n---\n\n# One\n\nSome *marked* text with a [link](h'
    'ttp://x.y) and `code`.\n\n'
    "- first\n- second\n\n## One and a half\n\nMore.\n\n# Two\n\n<script>never</script>\n\nEnd &amp; end.\n",
)
write(
    "book.html",
    "<html lang=de><head><title>Ein Buch</title><meta name=author content='Bert Brand'></head><body><nav"
    ">Men&uuml;</nav>"
    "<h1>Eins</h1><p>Gr&uuml;&szlig;e.<h2>Zwei</h2><p>Noch <sup>mehr</sup>.<h3>Kein Kapitel</h3><p>Ende."
    "</body></html>",
)
write("endless.srt", "1\n00:00:01,000 --> 00:00:02,000\nHi.\n\n2\n99999:00:00,000 --> 99999:00:01,000\nBye.\n")
write("zeros.srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "Words of it.\n" * 400 + "Before a zero\0and behind.\n")
write(
    "subs.srt",
    "1\r\n00:00:00,500 --> 00:00:01,500\r\n<i>Hello</i> there.\r\n\r\n2\r\n00:00:01,600 --> 00:00:02,000"
    "\r\n{\\an8}Far too many\r\nwords for this.\r\n\r\n"
    "3\r\n00:00:02,300 --> 00:00:03,000\r\nLate.\r\n\r\n4\r\n00:00:06,000 --> 00:00:07,000\r\nThe end.\r\n",
)
write(
    "subs.vtt",
    "WEBVTT\n\nNOTE nothing\n\nintro\n00:00.500 --> 00:01.500 align:start\n<v Ann>Tom &amp; Ann.\n3 --> 4\n\n01:0"
    "0:00.000 --> 01:00:01.000\nLate.\n",
)
write("paper.pdf", b"%PDF-1.4\n%\xe2\xe3\n")
write("noise.txt", bytes(range(256)) * 10)
write("nothing.txt", "\n \n* * *\n")
