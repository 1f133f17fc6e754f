// Children, workers, signals and timers of an event loop.
const { spawnSync, spawn, execFileSync } = require('child_process');
const { Worker } = require('worker_threads');
const fs = require('fs');

const said = [];
let left = 4;
const done = (line) => {
    said.push(line);
    if (--left === 0) console.log(said.sort().join('\n'));
};

let sum = 0;
for (let i = 0; i < 20; i++) sum += spawnSync('sh', ['-c', `exit ${i}`]).status;
console.log('children', sum, execFileSync('cat', { input: 'through cat' }).toString());

let handled = 0;
process.on('SIGUSR2', () => { if (++handled < 50) process.kill(process.pid, 'SIGUSR2'); else done('signals 50'); });
process.kill(process.pid, 'SIGUSR2');

let workers = 0;
for (let i = 0; i < 4; i++) {
    const worker = new Worker('let x = 0; for (let i = 0; i < 3e6; i++) x += i % 7; require("worker_threads").parentPort.postMessage(x)', { eval: true });
    worker.on('message', (x) => { workers += x; });
    worker.on('exit', () => { if (++exited === 4) done('workers ' + workers); });
}
let exited = 0;

const sleeper = spawn('sleep', ['60']);
sleeper.on('exit', (code, signal) => done(`sleeper ${code} ${signal}`));
setTimeout(() => sleeper.kill('SIGTERM'), 100);

let ticks = 0;
const every = setInterval(() => {
    fs.writeFileSync('tick', String(ticks));
    if (++ticks === 50) { clearInterval(every); done('ticks 50'); }
}, 2);
