// What is heard, to look at: the wave with the place in it, the clock, the text with the word that is heard.
const $ = id => document.getElementById(id);
const BAR = 3, GAP = 2;  // of the wave, in CSS pixels

function clock(seconds) {
    const tenths = Math.floor(seconds * 10), minutes = Math.floor(tenths / 600);
    return `${minutes}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
}

export class Stage {
    constructor(player, playFrom) {
        this.player = player;
        this.playFrom = playFrom;
        this.colours();
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.colours());
        new ResizeObserver(() => this.draw()).observe($("position"));
        $("position").addEventListener("pointerdown", e => this.point(e));
        $("position").addEventListener("keydown", e => this.key(e));
        $("said").addEventListener("click", e => this.pick(e));
    }

    colours() {
        const style = getComputedStyle(document.documentElement);
        [this.heard, this.other, this.ink] = ["--strong", "--wave", "--ink"].map(name => style.getPropertyValue(name));
        this.draw();
    }

    point(e) {
        const { take } = this.player, box = $("position").getBoundingClientRect();
        if (take?.n) this.playFrom((e.clientX - box.left) / box.width * take.seconds);
    }

    // By words where they are known, else by seconds.
    key(e) {
        const { player } = this, { take } = player;
        if (!take?.n) return;
        const here = player.position, i = take.wordAt(here + 0.001), words = take.words;
        const to = { ArrowRight: words[i + 1]?.start ?? here + 1, ArrowUp: here + 1, PageUp: here + 10,
            ArrowLeft: i >= 0 && here - words[i].start > 0.3 ? words[i].start : words[i - 1]?.start ?? here - 1,
            ArrowDown: here - 1, PageDown: here - 10, Home: 0, End: take.seconds }[e.key];
        if (to !== undefined) {
            e.preventDefault();
            player.seek(to);
            this.draw();
        }
    }

    // Another take is looked at.
    load(take) {
        this.text = document.createTextNode(take ? take.fields.input : "");
        $("said").replaceChildren(this.text);
        $("said").scrollTop = 0;
        this.marked = -1;
        CSS.highlights?.clear();
        this.draw();
    }

    // The word that is heard has another ground: a highlight, which changes nothing in the page.
    mark(second) {
        const { take, state } = this.player, i = take && second > 0 && state !== "ended" ? take.wordAt(second) : -1;
        if (i === this.marked || !CSS.highlights) return;
        this.marked = i;
        CSS.highlights.clear();
        if (i < 0) return;
        const range = new Range(), box = $("said"), { from, to } = take.words[i];
        range.setStart(this.text, from);
        range.setEnd(this.text, to);
        CSS.highlights.set("now", new Highlight(range));
        const word = range.getBoundingClientRect(), view = box.getBoundingClientRect();
        if (word.top < view.top || word.bottom > view.bottom) box.scrollTop += word.top - view.top - 8;
    }

    // The word under a pointer.
    pick(e) {
        const { take } = this.player, place = document.caretPositionFromPoint?.(e.clientX, e.clientY);
        const range = place ? null : document.caretRangeFromPoint?.(e.clientX, e.clientY);
        const at = place?.offset ?? range?.startOffset, node = place?.offsetNode ?? range?.startContainer;
        const word = node === this.text && take?.words.find(w => w && at >= w.from && at <= w.to);
        if (word && getSelection().isCollapsed) this.playFrom(word.start);
    }

    // The loudest 10 ms under each bar; kept until there is more sound or another width.
    bars(n) {
        const { take } = this.player;
        if (this.kept?.take !== take || this.kept.n !== n || this.kept.peaks !== take.peaks.length) {
            const each = take.peaks.length / n, bars = new Float32Array(n);
            for (let i = 0; i < take.peaks.length; i++) {
                const at = Math.min(n - 1, Math.floor(i / each));
                bars[at] = Math.max(bars[at], take.peaks[i]);
            }
            if (each < 1) for (let i = 0; i < n; i++) bars[i] = take.peaks[Math.floor(i * each)];
            this.kept = { take, n, peaks: take.peaks.length, bars };
        }
        return this.kept.bars;
    }

    draw() {
        const { take, position } = this.player, canvas = $("wave"), dense = devicePixelRatio || 1;
        const width = $("position").clientWidth, height = $("position").clientHeight, g = canvas.getContext("2d");
        if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
            canvas.width = Math.round(width * dense);
            canvas.height = Math.round(height * dense);
        }
        g.setTransform(dense, 0, 0, dense, 0, 0);
        g.clearRect(0, 0, width, height);
        const n = Math.floor((width + GAP) / (BAR + GAP)), bars = take?.n ? this.bars(n) : new Float32Array(n);
        const x = take?.n ? position / take.seconds * width : 0;
        for (let i = 0; i < n; i++) {
            const left = i * (BAR + GAP), tall = Math.max(2, Math.sqrt(bars[i]) * height);
            g.fillStyle = left + BAR / 2 <= x && take?.n ? this.heard : this.other;
            g.fillRect(left, (height - tall) / 2, BAR, tall);
        }
        if (take?.n) {
            g.fillStyle = this.ink;
            g.fillRect(Math.min(width - 2, Math.max(0, x - 1)), 0, 2, height);
        }
        this.tell(take, position);
    }

    tell(take, position) {
        const slider = $("position"), seconds = take ? take.seconds : 0, second = String(Math.floor(position));
        const now = `${clock(position)} / ${clock(seconds)}${take && !take.made ? " …" : ""}`;
        if ($("clock").textContent !== now) $("clock").textContent = now;
        this.mark(position);
        if (slider.ariaValueNow !== second || slider.ariaValueMax !== String(Math.floor(seconds))) {
            slider.ariaValueMax = String(Math.floor(seconds));
            slider.ariaValueNow = second;
            slider.ariaValueText = take?.n ? `${clock(position)} of ${clock(seconds)}` : "nothing to hear yet";
        }
    }
}
