// Says whether V8 takes the code that `h5log code-cache` has kept.
import vm from 'node:vm';

const { Script } = vm;
let rejected;
vm.Script = class extends Script {
  constructor(source, options) {
    super(source, options);
    rejected = this.cachedDataRejected;
  }
};
const { File } = await import('h5log');
console.log(`${typeof File.open} rejected: ${rejected}`);
