/** The implementation of a mounted API: `endpointConfig` of the type `mounted`, with `module` and `settings`. */
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { BUILT_IN_NAMES, NAMES_WITH_WORK } from '../mounted/built-in-names.ts'
import type { MountedDefinition, WorkStart } from './api-definition.ts'
import type { Violation, YamlFile } from './yaml-file.ts'

const CONFIG = ['data', 'endpointConfig']
const MODULE = [...CONFIG, 'module']
const SETTINGS = [...CONFIG, 'settings']
const WORK = [...CONFIG, 'work']
/** Members of the types with endpoints, which a mounted API must not have. */
const OF_ENDPOINTS = [
  ...['production_endpoints', 'sandbox_endpoints', 'production_failovers', 'sandbox_failovers'],
  ...['endpoint_security', 'algorithm', 'failOver'],
]
/** Names of modules of the gateway. */
const BUILT_IN = /^sluice:/
const IS_MODULE = /\.(?:js|mjs|ts|mts)$/

export function isMounted(file: YamlFile): boolean {
  return file.optional([...CONFIG, 'endpoint_type']) === 'mounted'
}

/** Returns null for an API with endpoints, and after an error. `folder`: of the project, below `apis/` of its home. */
export function readMounted(file: YamlFile, folder: string): MountedDefinition | null {
  if (!isMounted(file)) {
    for (const path of [MODULE, SETTINGS, WORK]) {
      if (file.has(path)) file.error(path, undefined, 'belongs to the type mounted', 'write endpoint_type: mounted')
    }
    return null
  }
  for (const name of OF_ENDPOINTS) {
    const path = [...CONFIG, name]
    if (file.hasContent(path)) file.error(path, undefined, 'a mounted API has no endpoints', 'remove it, or module')
  }
  const module = file.text(MODULE)
  if (module === undefined) return null
  const found = BUILT_IN.test(module) ? builtIn(module) : moduleFile(folder, module)
  if (isViolation(found)) {
    file.report(MODULE, module, found)
    return null
  }
  const keyTypes = { production: true, sandbox: true }
  return { ...found, settings: readSettings(file), keyTypes, work: readWork(file, found.module) }
}

type Located = Pick<MountedDefinition, 'module' | 'digest'>

function isViolation(found: Located | Violation): found is Violation {
  return Array.isArray(found)
}

function builtIn(module: string): Located | Violation {
  if (BUILT_IN_NAMES.some(name => name === module)) return { module, digest: '' }
  return ['there is no such module', `the gateway has ${BUILT_IN_NAMES.join(', ')}`]
}

/** Finds a file of the project or of its home, such as `../../modules/notes.js`. Symbolic links are resolved. */
function moduleFile(folder: string, module: string): Located | Violation {
  if (isAbsolute(module)) return ['must be a path from the folder of the project on', 'for example notes.js']
  if (!IS_MODULE.test(module)) return ['must be an ES module: .js, .mjs or .ts', 'for example notes.js']
  try {
    const home = realpathSync(resolve(folder, '../..'))
    const file = realpathSync(resolve(folder, module))
    const way = relative(home, file)
    if (way.split(sep)[0] === '..' || isAbsolute(way)) {
      return ['is outside of the configuration folder', 'put it into the folder of the project']
    }
    return { module: file, digest: createHash('sha256').update(readFileSync(file)).digest('base64url') }
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException
    return [`cannot be read (${code})`, 'name a file of the project']
  }
}

function readSettings(file: YamlFile): MountedDefinition['settings'] {
  const settings = file.value(SETTINGS)
  if (settings === undefined) return {}
  if (typeof settings === 'object' && settings !== null && !Array.isArray(settings)) {
    return settings as MountedDefinition['settings']
  }
  file.error(SETTINGS, undefined, 'expected names with their values', 'write name: value')
  return {}
}

/** A module of the gateway works once it is used; one of operators as they say. */
function readWork(file: YamlFile, module: string): WorkStart {
  if (file.has(WORK)) return file.flag(WORK, false) ? 'start' : 'off'
  return NAMES_WITH_WORK.includes(module) ? 'use' : 'none'
}
