// What the eye and the finger meet, measured in the page: each gives {n, bad}, how much was looked at and what is wrong.

function colour(text) {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return { rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1 };
}

// WCAG 2: from 1, the same, to 21, black on white.
function ratio(one, other) {
    const light = ({ rgb }) => {
        const [r, g, b] = rgb.map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [more, less] = [light(one), light(other)].sort((a, b) => b - a);
    return (more + 0.05) / (less + 0.05);
}

function ground(e) {
    for (; e; e = e.parentElement) {
        const c = colour(getComputedStyle(e).backgroundColor);
        if (c.alpha === 1) return c;
    }
    return { rgb: [255, 255, 255] };
}

// Every text against what is behind it, and the edge of every control against what is around it.
function contrast() {
    const bad = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let n = 0;
    for (let t; (t = walker.nextNode());) {
        const e = t.parentElement;
        if (!t.data.trim() || !e.checkVisibility() || e.closest("script,style")) continue;
        const r = ratio(colour(getComputedStyle(e).color), ground(e));
        n++;
        if (r < 4.5) bad.push([t.data.trim().slice(0, 30), r.toFixed(2)]);
    }
    for (const e of document.querySelectorAll("button:not([aria-disabled=true]),select,textarea,input:not([type=range])")) {
        if (!e.checkVisibility()) continue;
        const r = ratio(colour(getComputedStyle(e).borderTopColor), ground(e.parentElement));
        n++;
        if (r < 3) bad.push([e.id || e.textContent, "edge " + r.toFixed(2)]);
    }
    return { n, bad };
}

// What the keyboard reaches goes down the page and along its lines; each is large enough for a finger; nothing has to be
// scrolled sideways; headings have no gaps.
function places() {
    const bad = [], reached = 'a[href],button,select,textarea,input,[tabindex="0"]';
    const all = [...document.querySelectorAll(reached)].filter(e => e.checkVisibility());
    let before = null;
    for (const e of all) {
        const box = e.getBoundingClientRect(), top = box.top + scrollY, name = e.id || e.textContent;
        if (box.width < 24 || (box.height < 24 && e.tagName !== "A")) bad.push([name, box.width, box.height]);
        const follows = !before || top >= before.bottom - 2 || (top + box.height > before.top && box.left >= before.left);
        if (!follows) bad.push([name, "out of order"]);
        before = { top, bottom: top + box.height, left: box.left };
    }
    if (document.documentElement.scrollWidth > innerWidth) bad.push(["scrolls sideways"]);
    const levels = [...document.querySelectorAll("h1,h2,h3")].filter(h => h.checkVisibility()).map(h => Number(h.tagName[1]));
    if (levels[0] !== 1 || levels.some((l, i) => i && l > levels[i - 1] + 1)) bad.push(["headings", levels.join()]);
    if (!document.documentElement.lang || !document.title) bad.push(["no language or title"]);
    return { n: all.length, bad };
}
