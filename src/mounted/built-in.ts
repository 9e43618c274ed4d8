/** Implementations that come with the gateway. They are loaded with the first request to an API that names them. */
import { BUILT_IN_NAMES, type BuiltInName } from './built-in-names.ts'
import type { OpenMountedApi } from './interface.ts'

type Load = () => Promise<{ readonly open: OpenMountedApi }>

const MODULES: Readonly<Record<BuiltInName, Load>> = {
  'sluice:healthcare': () => import('./healthcare/healthcare-api.ts'),
  'sluice:notification-senders': () => import('./notifications/notifications-api.ts'),
  'sluice:sample': () => import('./sample/notes.ts'),
}

/** Undefined for the path of a file. */
export function builtInModule(module: string): Load | undefined {
  const name = BUILT_IN_NAMES.find(name => name === module)
  return name === undefined ? undefined : MODULES[name]
}
