// Speaks to a file of 32-bit floats, 24,000 a second: node say.mjs TEXT FILE
// utter.node beside it is made of node.c.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const utter = createRequire(import.meta.url)(process.env.UTTER_NODE ?? "./utter.node");
const [text, file] = process.argv.slice(2);
writeFileSync(file, utter.say(text));
