// Ukemi as a user has it: the built files, with the types of their sources.

/** Imports a file of dist/; `T` is the type of its source, `typeof Module`. */
export async function built<T>(path: string): Promise<T> {
  return (await import(new URL(`../dist/${path}`, import.meta.url).href)) as T;
}
