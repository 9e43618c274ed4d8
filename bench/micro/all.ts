/** Every micro-benchmark: `npx node bench/micro/all.ts`. */
import './machine.ts'
import './reader.ts'
import './rewrite.ts'
