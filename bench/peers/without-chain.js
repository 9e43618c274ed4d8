/**
 * Makes a gateway one whose APIs have no handlers: `node --import .../without-chain.js src/launch.js start`. Everything
 * else is the same code. Plain JavaScript, because every thread imports it before its first TypeScript file.
 */
import { registerHooks } from 'node:module'

const CHAIN = '/src/chain-of.ts'
const WHOLE = '?whole'

registerHooks({
  load(url, context, next) {
    if (!url.endsWith(CHAIN)) return next(url, context)
    // A name exported here wins over the same name of the star.
    const source = `export * from '${url}${WHOLE}'
export const chainOf = () => []
process.stderr.write('runs without a chain\\n')`
    return { format: 'module', source, shortCircuit: true }
  },
})
