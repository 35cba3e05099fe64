// Keeps sharp loaded: reads a line of JSON for each picture and answers with one.
// The first argument is where the package is.
const sharp = require(process.argv[2]);
const path = require("path");
sharp.cache(false); // each run is the first of its file

async function run(r) {
  if (r.op !== "run") return;
  let s = sharp(r.input);
  if (r.width) s = s.resize(r.width);
  await s[r.format](r.options || {}).toFile(path.join(r.dir, "out." + r.format));
}

const answer = (m) => process.stdout.write(JSON.stringify(m) + "\n");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  run(JSON.parse(line)).then(() => answer({}), (e) => answer({ error: String(e) }));
});
