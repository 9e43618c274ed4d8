/**
 * Files of this program name each other by relative paths that end in `.ts`, so where one stands needs no looking up:
 * by default each import costs a look at the file, its real path and the nearest package.json. The same goes for
 * packages of many small files: kysely has 260. Plain JavaScript for the reason that `launch.js` gives; every thread
 * imports it before its first TypeScript file.
 */
import { registerHooks } from 'node:module'

/** Folders in which every `.js` file is an ES module, and is named in full. */
const MODULES = /\/node_modules\/(?:hono\/dist\/(?!cjs\/)|jose\/dist\/webapi\/|kysely\/dist\/esm\/)/

registerHooks({
  resolve(specifier, context, next) {
    const format = specifier.startsWith('.') ? formatOf(specifier, context.parentURL) : ''
    if (format === '') return next(specifier, context)
    return { url: new URL(specifier, context.parentURL).href, format, shortCircuit: true }
  },
})

function formatOf(specifier, parent) {
  if (specifier.endsWith('.ts')) return 'module-typescript'
  return specifier.endsWith('.js') && MODULES.test(parent) ? 'module' : ''
}
