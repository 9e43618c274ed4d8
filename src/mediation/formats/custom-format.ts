/**
 * Builders and formatters of the operator: ES modules inside the configuration folder, which export `build` or
 * `format`. They run in worker threads, and may not return promises, because sequences read payloads synchronously.
 */
import { isJavaClass, loadModule } from '../../config/module-file.ts'
import type { BuildFunction, FormatFunction } from './format-interface.ts'
import type { FormatModules } from './format-settings.ts'

/** By media type. */
export interface CustomFormats {
  readonly builders: ReadonlyMap<string, BuildFunction>
  readonly formatters: ReadonlyMap<string, FormatFunction>
}

export const NO_CUSTOM_FORMATS: CustomFormats = { builders: new Map(), formatters: new Map() }

/** Loads the modules. Throws ModuleError. */
export async function loadCustomFormats(home: string, modules: FormatModules): Promise<CustomFormats> {
  const load = async <T>(paths: Readonly<Record<string, string>>, name: string): Promise<ReadonlyMap<string, T>> => {
    const loads = Object.entries(paths)
      .filter(([, path]) => !isJavaClass(path))
      .map(async ([type, path]) => [type, (await loadModule(home, path, name)) as T] as const)
    return new Map(await Promise.all(loads))
  }
  const { builders, formatters } = modules
  return {
    builders: await load<BuildFunction>(builders, 'build'),
    formatters: await load<FormatFunction>(formatters, 'format'),
  }
}
