/**
 * Files of this program name each other by relative paths that end in `.ts`, so where one stands needs no looking up:
 * by default each import costs a look at the file, its real path and the nearest package.json. Plain JavaScript for
 * the reason that `launch.js` gives; every thread imports it before its first TypeScript file.
 */
import { registerHooks } from 'node:module'

registerHooks({
  resolve(specifier, context, next) {
    if (!specifier.startsWith('.') || !specifier.endsWith('.ts')) return next(specifier, context)
    return { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true }
  },
})
