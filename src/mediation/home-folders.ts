/** Folders of a home that hold files of sequences, templates and endpoints. */
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Diagnostics } from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'

type HomeFolder = 'sequences' | 'templates' | 'endpoints'

export const EXTENSION = '.xml'
/** Files of one folder that are read. */
export const FILES_MAX = 256

/** Path of a folder from its home. */
export function pathOf(kind: HomeFolder): string {
  return join('synapse-configs', 'default', kind)
}

/** Where a folder may be: in the home itself or, as on the reference platform, below it. */
export function placesOf(kind: HomeFolder, home: string): readonly string[] {
  return [pathOf(kind), join('repository', 'deployment', 'server', pathOf(kind))].map(path => resolve(home, path))
}

/** The folder that is read, and a warning about another one beside it. Undefined for none that `isThere` finds. */
export function folderOf(
  kind: HomeFolder,
  home: string,
  isThere: (folder: string) => boolean,
  diagnostics: Diagnostics,
): string | undefined {
  const [folder, ignored] = placesOf(kind, home).filter(isThere)
  if (folder !== undefined && ignored !== undefined) {
    diagnostics.warn(labelOf(ignored), '', `is ignored, because ${labelOf(folder)} exists`, '')
  }
  return folder
}

/** Sorted names of the files of a folder, without extension. Throws where the folder cannot be read. */
export function stemsIn(folder: string): readonly string[] {
  const files = readdirSync(folder).filter(isSequenceFile)
  return files.map(name => name.slice(0, -EXTENSION.length)).sort()
}

/** Sorted names of what a folder holds; none where it cannot be read. */
export function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

export function isSequenceFile(name: string): boolean {
  return name.endsWith(EXTENSION) && !name.startsWith('.')
}

/** Tells whether a folder exists, also one that cannot be read. */
export function exists(folder: string): boolean {
  try {
    readdirSync(folder)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code !== 'ENOENT' && code !== 'ENOTDIR'
  }
}
