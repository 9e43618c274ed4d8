/** The libraries of expressions without bounds, for comparisons. */
import { createRequire } from 'node:module'

/** A second copy of a library, without bounds. */
export function unboundedLibrary<T>(name: 'xpath' | 'json-p3'): T {
  const require = createRequire(import.meta.url)
  const path = require.resolve(name)
  const { [path]: cached } = require.cache
  delete require.cache[path]
  const library = require(path)
  require.cache[path] = cached
  return library
}
