// Node 20.19 and up load an ES module without top-level await from CommonJS.
const { File, H5LogError } = require('h5log');
const { memoryStorage } = require('h5log/storage');

const file = File.createSync(memoryStorage());
file.createGroup('from-commonjs');
file.flushSync();
if (!file.has('from-commonjs') || typeof H5LogError !== 'function') throw new Error('require gave something else');
file.closeSync();
