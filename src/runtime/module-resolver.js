/**
 * Resolves relative imports of this program's files without the file system: Node's own resolution looks at the
 * file, its real path and the nearest package.json for each import. Packages of many small files profit too (kysely has
 * 260). Plain JavaScript, as `launch.js` explains; every thread imports it before its first TypeScript file.
 */
import { registerHooks } from 'node:module'

/** Package folders whose `.js` files are ES modules and import each other by full file names. */
const MODULES = /\/node_modules\/(?:hono\/dist\/(?!cjs\/)|jose\/dist\/webapi\/|kysely\/dist\/esm\/)/
/** Folder of this program's files: `src/`, or `lib/` with the bundles. */
const OWN = new URL('..', import.meta.url).href

registerHooks({
  resolve(specifier, context, next) {
    const format = specifier.startsWith('.') ? formatOf(specifier, context.parentURL) : ''
    if (format === '') return next(specifier, context)
    return { url: new URL(specifier, context.parentURL).href, format, shortCircuit: true }
  },
})

function formatOf(specifier, parent) {
  if (specifier.endsWith('.ts')) return 'module-typescript'
  return specifier.endsWith('.js') && (parent.startsWith(OWN) || MODULES.test(parent)) ? 'module' : ''
}
