/** Reads keys from tables, whose columns have known titles. */
import {
  choicesOf,
  defaultOfCell,
  type KeyProperties,
  type FoundKey,
  NO_PROPERTIES,
  typeOfCell,
  unitAtStart,
} from './properties.ts'
import { type Block, SpecError, splitOutside } from './markdown.ts'
import { membersOf, namesOfCell, type SectionName } from './names.ts'

/** Position of a name among the names of its row. */
interface RowPosition {
  readonly name: string
  readonly index: number
  readonly count: number
}

const COLUMNS = ['Key', 'Keys', 'Section', 'Type', 'Default', 'Defaults', 'Default / meaning', 'Meaning']
/** Name of a transport where its two sections differ -> end of the section's name. */
const SIDES: Readonly<Record<string, string>> = { plain: 'http', secured: 'https' }

/** Matches a remark on the type that begins with the last name of the only section with this key. */
const ONE_SECTION = /\((\w+), /

/** Reads the rows of one table, and remembers cells that later rows refer to. */
export class TableReader {
  readonly #sections: readonly SectionName[]
  #members: readonly string[] = []
  /** Properties of the members of a group by last name, for a later group with "same". */
  readonly #earlier = new Map<string, KeyProperties>()

  constructor(sections: readonly SectionName[]) {
    this.#sections = sections
  }

  read({ cells, line }: Block): readonly FoundKey[] {
    const strange = Object.keys(cells).find(column => !COLUMNS.includes(column))
    if (strange !== undefined) throw new SpecError(line, `the column "${strange}" is not known`)
    const nameCell = cells.Key ?? cells.Keys ?? ''
    this.#members = membersOf(nameCell) ?? this.#members
    const names = namesOfCell(nameCell, this.#members, line)
    const keys = names.flatMap(({ name, aliasOf }, index) =>
      this.#sectionsFor(cells, name, line).map(section => {
        const properties = this.#properties(cells, section, { name, index, count: names.length })
        return { section, name: below(section, name), aliasOf: below(section, aliasOf), exampleOnly: false, properties }
      }),
    )
    for (const { name, properties } of keys) this.#earlier.set(lastOf(name), properties)
    return keys
  }

  #sectionsFor(cells: Block['cells'], name: string, line: number): readonly SectionName[] {
    if (cells.Section !== undefined) return [{ name: cells.Section, repeated: false }]
    if (this.#sections.length === 0) {
      // In a table without a section, each key begins with the name of its section.
      if (!name.includes('.')) throw new SpecError(line, `"${name}" stands in no section`)
      return [{ name: name.slice(0, name.indexOf('.')), repeated: false }]
    }
    const only = ONE_SECTION.exec(cells.Type ?? '')?.[1]
    return this.#sections.filter(section => only === undefined || section.name.endsWith(`.${only}`))
  }

  #properties(cells: Block['cells'], section: SectionName, position: RowPosition): KeyProperties {
    const typeCell = ofEach(cells.Type ?? '', /^\//, position)
    const type = typeOfCell(typeCell.replace(ONE_SECTION, '('))
    const meaning = cells.Meaning ?? ''
    const only = cells['Default / meaning']
    const unit = type.unit || unitAtStart(only ?? meaning)
    const choices = choicesOf(only ?? meaning)
    if (only !== undefined) {
      const isDefault = /^(?:true|false|-?\d+)$/.test(only)
      return { ...NO_PROPERTIES, ...type, unit, choices, ...(isDefault ? defaultOfCell(only) : {}) }
    }
    const cell = ofSide(ofEach(cells.Default ?? cells.Defaults ?? '', /^, /, position), section)
    if (cell === 'same') return this.#earlier.get(lastOf(position.name)) ?? NO_PROPERTIES
    const [, before, member, one, other] = /^(.*); (\w+) (\w+) or (\w+)$/.exec(cell) ?? []
    const ofMember = member !== undefined && member === lastOf(position.name) ? [one!, other!] : choices
    return { ...type, unit, choices: ofMember, ...defaultOfCell(before ?? cell) }
  }
}

/** The part of a cell for one key, if the cell has as many parts as the row has keys. */
function ofEach(cell: string, separator: RegExp, { index, count }: RowPosition): string {
  const parts = splitOutside(cell, separator)
  return count > 1 && parts.length === count ? parts[index]! : cell
}

/** The part of a cell such as `8290 (plain), 8253 (secured)` for one section. */
function ofSide(cell: string, section: SectionName): string {
  const sides = [...cell.matchAll(/(\S+) \((\w+)\)/g)].filter(([, , side]) => SIDES[side!] !== undefined)
  return sides.find(([, , side]) => section.name.endsWith(`_${SIDES[side!]}`))?.[1] ?? cell
}

function lastOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}

function below({ name: section }: SectionName, name: string): string {
  return name.startsWith(`${section}.`) ? name.slice(section.length + 1) : name
}
