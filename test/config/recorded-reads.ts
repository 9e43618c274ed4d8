/** A configuration that records which of its keys are read. */
import type { Configuration } from '../../src/config/catalogue.ts'
import { keyPath } from '../../src/config/key.ts'
import { isRepeated } from '../../src/config/tables.ts'

type Values = Readonly<Record<string, unknown>>

/** `reads` collects paths without indexes, `section.key`. Copying a whole section reads none of its keys. */
export function recordReads(configuration: Configuration, reads: Set<string>): Configuration {
  const sections = Object.entries(configuration).map(([section, values]) => [section, recorded(section, values, reads)])
  return Object.fromEntries(sections) as Configuration
}

function recorded(section: string, values: unknown, reads: Set<string>): unknown {
  if (isRepeated(section))
    return (values as readonly Values[]).map(row => new Proxy({ ...row }, recorder(section, reads)))
  return new Proxy({ ...(values as Values) }, recorder(section, reads))
}

function recorder(section: string, reads: Set<string>): ProxyHandler<Record<string, unknown>> {
  // A spread asks for the descriptor of each key before its value.
  let copied: PropertyKey = ''
  return {
    getOwnPropertyDescriptor: (values, key) => {
      copied = key
      return Reflect.getOwnPropertyDescriptor(values, key)
    },
    get: (values, key) => {
      const value = Reflect.get(values, key)
      const isCopy = key === copied
      copied = ''
      if (isCopy || typeof key !== 'string') return value
      const path = keyPath(section, key)
      if (isRepeated(path)) return recorded(path, value, reads)
      reads.add(path)
      return value
    },
  }
}
