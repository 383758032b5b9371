// Follows the system's color scheme unless the user selects one.

type Name = "light" | "dark";
const KEY = "firth-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Name | null {
  const name = localStorage.getItem(KEY);
  return name === "light" || name === "dark" ? name : null;
}

class Theme {
  name = $state<Name>(stored() ?? (system.matches ? "dark" : "light"));

  constructor() {
    this.#show();
    system.addEventListener("change", () => {
      if (stored()) return;
      this.name = system.matches ? "dark" : "light";
      this.#show();
    });
  }

  toggle(): void {
    this.name = this.name === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, this.name);
    this.#show();
  }

  #show(): void {
    document.documentElement.dataset.theme = this.name;
  }
}

export const theme = new Theme();
