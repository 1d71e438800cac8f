// Plays a take, also while it is being made, and says truly what is heard: sound is given to the system a few seconds
// ahead, and the place is counted by the clock of the sound.

const AHEAD_S = 4, SLICE_S = 1, START_S = 0.03, PUMP_MS = 100;

export class Player {
    // state: "empty", "playing", "paused", "ended"; `changed` is called when it becomes another one.
    constructor(changed) {
        this.changed = changed;
        this.state = "empty";
        this.take = null;
        this.sources = new Set();
        this.cursor = 0;  // seconds, where it is not playing
        this.gaps = 0;    // how often nothing was there to be heard
        setInterval(() => this.pump(), PUMP_MS);
    }

    become(state) {
        if (this.state !== state) {
            this.state = state;
            this.changed();
        }
    }

    load(take) {
        this.silence();
        this.take = take;
        this.cursor = this.gaps = 0;
        this.become(take ? "paused" : "empty");
    }

    silence() {
        for (const source of this.sources) source.stop();
        this.sources.clear();
        this.base = null;
    }

    // Where the listener is, in seconds.
    get position() {
        if (this.state !== "playing" || !this.base) return this.cursor;
        const heard = this.context.currentTime - (this.context.outputLatency || 0) - this.base.time;
        return Math.min(this.base.second + Math.max(heard, 0), this.next / this.take.rate);
    }

    play(from = this.cursor) {
        const { rate } = this.take;
        if (this.context?.sampleRate !== rate) {
            this.context?.close();
            this.context = new AudioContext({ sampleRate: rate });  // so that no piece is resampled by itself
        }
        this.context.resume();
        this.silence();
        this.next = Math.max(0, Math.round(Math.min(from, this.take.seconds) * rate));
        this.cursor = this.next / rate;
        this.at = 0;  // by the clock of the sound: when what is next will be heard
        this.become("playing");
        this.pump();
    }

    pause() {
        if (this.state === "playing") {
            this.cursor = this.position;
            this.silence();
            this.become("paused");
        }
    }

    // Moves without a change of whether it plays.
    seek(second) {
        const to = Math.max(0, Math.min(second, this.take.seconds));
        if (this.state === "playing") {
            this.play(to);
        } else {
            this.cursor = to;
            this.become("paused");
        }
    }

    end() {
        this.cursor = this.take ? this.take.seconds : 0;
        this.silence();
        this.become("ended");
    }

    // Gives the next seconds to the system; called often, and when sound has come.
    pump() {
        if (this.state !== "playing") return;
        const { take, context } = this, { rate } = take, now = context.currentTime;
        if (this.at <= now) {
            if (this.next >= take.n) {  // all that is there has been heard
                if (take.made) this.end();
                return;
            }
            this.gaps += this.at > 0;
            this.at = now + START_S;
            this.base = { time: this.at, second: this.next / rate };
        }
        while (this.next < take.n && this.at < now + AHEAD_S) {
            const samples = take.slice(this.next, SLICE_S * rate), source = context.createBufferSource();
            source.buffer = context.createBuffer(1, samples.length, rate);
            source.buffer.copyToChannel(samples, 0);
            source.connect(context.destination);
            source.onended = () => this.sources.delete(source);
            source.start(this.at);
            this.sources.add(source);
            this.next += samples.length;
            this.at += samples.length / rate;
        }
    }
}
