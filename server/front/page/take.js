// A take: what was said, with its sound and its words; and takes that are kept in this browser over a reload.

const PEAK_S = 0.01;

export class Take {
    constructor(fields) {
        this.id = Date.now() + Math.random();
        this.fields = fields;
        this.rate = 24000;
        this.chunks = [];  // Int16Array
        this.n = 0;        // samples in them
        this.peaks = [];   // the loudest sample of each 10 ms, 0 to 1
        this.words = [];   // {from, to: places in the text, start, end: seconds}
        this.made = false; // no more sound will come
        this.finish = "";  // why not
    }

    get seconds() {
        return this.n / this.rate;
    }

    add(samples) {
        const each = Math.round(this.rate * PEAK_S);
        this.chunks.push(samples);
        for (let i = 0; i < samples.length; i++) {
            const at = Math.floor((this.n + i) / each);
            this.peaks[at] = Math.max(this.peaks[at] || 0, Math.abs(samples[i]) / 32768);
        }
        this.n += samples.length;
    }

    // Words as the server tells them: places in bytes of UTF-8, each word told again when its times are final.
    learn(words) {
        this.places ??= placesOf(this.fields.input);
        for (const w of words) {
            this.words[w.index] = { from: this.places[w.at] ?? 0, to: this.places[w.at + w.bytes] ?? 0, start: w.start, end: w.end };
        }
    }

    // The index of the word that is heard at this second; -1: none yet.
    wordAt(second) {
        let low = 0, high = this.words.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.words[middle] && this.words[middle].start <= second) low = middle + 1;
            else high = middle;
        }
        return low - 1;
    }

    // Samples from place `from` on, at most `most`, as floats.
    slice(from, most) {
        const out = new Float32Array(Math.min(most, this.n - from));
        if (!this.index || this.index.chunk >= this.chunks.length || this.index.at > from) this.index = { chunk: 0, at: 0 };
        let { chunk, at } = this.index, done = 0;
        while (done < out.length) {
            const samples = this.chunks[chunk], begin = from + done - at;
            if (begin >= samples.length) {
                at += samples.length;
                chunk++;
                this.index = { chunk, at };
                continue;
            }
            const n = Math.min(samples.length - begin, out.length - done);
            for (let i = 0; i < n; i++) out[done + i] = samples[begin + i] / 32768;
            done += n;
        }
        return out;
    }

    wav() {
        const head = new DataView(new ArrayBuffer(44)), n = this.n * 2;
        const text = (at, s) => [...s].forEach((c, i) => head.setUint8(at + i, c.charCodeAt(0)));
        text(0, "RIFF"); head.setUint32(4, 36 + n, true); text(8, "WAVEfmt "); head.setUint32(16, 16, true);
        head.setUint16(20, 1, true); head.setUint16(22, 1, true); head.setUint32(24, this.rate, true);
        head.setUint32(28, this.rate * 2, true); head.setUint16(32, 2, true); head.setUint16(34, 16, true);
        text(36, "data"); head.setUint32(40, n, true);
        return new Blob([head, ...this.chunks], { type: "audio/wav" });
    }
}

// Of each byte of the text in UTF-8, the place in the string.
function placesOf(text) {
    const places = [];
    let at = 0;
    for (const c of text) {
        const code = c.codePointAt(0), n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (let i = 0; i < n; i++) places.push(at);
        at += c.length;
    }
    places.push(at);
    return places;
}

/* ---- Kept ---- */

export const MOST_TAKES = 24;
const MOST_BYTES = 200e6;  // of all of them

function request(r) {
    return new Promise((resolve, reject) => {
        r.onsuccess = () => resolve(r.result);
        r.onerror = () => reject(r.error);
    });
}

async function store(mode) {
    const open = indexedDB.open("utter", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("takes", { keyPath: "id" });
    const db = await request(open);
    return db.transaction("takes", mode).objectStore("takes");
}

// Newest first.
export async function keptTakes() {
    const all = await request((await store("readonly")).getAll());
    return all.sort((a, b) => b.id - a.id).map(kept => {
        const take = new Take(kept.fields);
        Object.assign(take, { id: kept.id, rate: kept.rate, words: kept.words, finish: kept.finish, made: true });
        take.add(new Int16Array(kept.pcm));
        return take;
    });
}

// False: it is too long to be kept. The oldest go, where all together are too long.
export async function keep(take, others) {
    if (take.n * 2 > MOST_BYTES) return false;
    const all = new Int16Array(take.n);
    take.chunks.reduce((at, samples) => (all.set(samples, at), at + samples.length), 0);
    const { id, fields, rate, words, finish } = take;
    await request((await store("readwrite")).put({ id, fields, rate, words, finish, pcm: all.buffer }));
    let bytes = take.n * 2;
    for (const other of others) {
        bytes += other === take ? 0 : other.n * 2;
        if (bytes > MOST_BYTES) await forget(other);
    }
    return true;
}

export async function forget(take) {
    await request((await store("readwrite")).delete(take.id));
}
