// Prints each task dump of a folder of traces, innermost frame first, by the recipe that comes with dial9.
// node dumps.js TOOLKIT FOLDER, where TOOLKIT is the folder skills/dial9-toolkit/scripts of the crate dial9.
const [toolkit, folder] = process.argv.slice(2);
const { parseTrace, symbolizeChain, formatFrame } = require(toolkit + "/trace_parser.js");

(async () => {
  for await (const trace of parseTrace(folder)) {
    for (const [task, place] of trace.taskSpawnLocs) console.log(`task ${task} spawned at ${place}`);
    for (const [task, dumps] of trace.taskDumps) {
      for (const dump of dumps) {
        console.log(`task ${task} was idle`);
        for (const frame of symbolizeChain(dump.callchain, trace.callframeSymbols)) {
          console.log("  " + formatFrame(frame).text + "  " + (frame.location || ""));
        }
      }
    }
  }
})();
