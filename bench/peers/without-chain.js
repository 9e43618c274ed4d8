/**
 * Runs the gateway without filter chains: `node --import .../without-chain.js src/launch.js start`. All other code is
 * unchanged. Plain JavaScript, because every thread imports it before its first TypeScript file.
 */
import { registerHooks } from 'node:module'

const CHAIN_BUILDER = '/src/filters/build-chain.ts'
const ORIGINAL = '?original'

registerHooks({
  load(url, context, next) {
    if (!url.endsWith(CHAIN_BUILDER)) return next(url, context)
    // An export of this name takes precedence over the same name from the star.
    const source = `export * from '${url}${ORIGINAL}'
export const buildFilterChain = () => []
process.stderr.write('runs without a filter chain\\n')`
    return { format: 'module', source, shortCircuit: true }
  },
})
