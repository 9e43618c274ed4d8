/** The short micro-benchmarks: `npx node bench/micro/all.ts`. The others are run by their own names. */
import './machine.ts'
import './codec.ts'
