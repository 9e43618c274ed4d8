/** `1 message`, `2 messages`; `several`: the plural, where it is another one. */
export function plural(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`
}
