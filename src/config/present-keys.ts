/** The keys of one configuration: those of the catalogue, once per row of a repeated table and per free name in use. */
import { type AnySection, type CatalogueKey, SECTIONS } from './catalogue.ts'
import { FREE_NAME } from './key.ts'
import { type PlacedRow, withoutPlaces } from './setting.ts'

/** In documented order, rows in that of the file. `paths` are those that somebody set. */
export function presentKeys(paths: readonly string[], rows: readonly PlacedRow[]): readonly CatalogueKey[] {
  return SECTIONS.flatMap(section => {
    if (!section.repeated) return keysAt(section, section.name, paths)
    const places = rows.map(row => row.path).filter(path => isRowOf(section.name, path))
    return [...new Set(places)].flatMap(place => keysAt(section, place, paths))
  })
}

function isRowOf(table: string, path: string): boolean {
  return path.startsWith(`${table}[`) && withoutPlaces(path) === table && path.endsWith(']')
}

function keysAt({ keys }: AnySection, section: string, paths: readonly string[]): readonly CatalogueKey[] {
  return Object.entries(keys).flatMap(([key, definition]) => {
    const names = key.endsWith(FREE_NAME) ? freeNames(section, key, paths) : [key]
    return names.map(name => ({ section, key: name, path: `${section}.${name}`, definition }))
  })
}

function freeNames(section: string, key: string, paths: readonly string[]): readonly string[] {
  const start = `${section}.${key.slice(0, -FREE_NAME.length)}`
  const taken = paths.filter(path => path.startsWith(start) && path.length > start.length && !path.includes('['))
  return taken.map(path => path.slice(section.length + 1))
}
